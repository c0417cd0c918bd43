// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/report"
)

func newKeysPublic(p *program.Program) *cobra.Command {
	k := &creatingKeys{Program: p}
	cmd := &cobra.Command{
		Use: "public", Short: "Print the public part of the key that this cluster signs with",
		Long: `Print a manifest with the public part of the key that this cluster signs its reports
with, for the clusters of the environments that come after those of this one.

It reads the Secret with the private key, so you need the right to read that.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return k.public(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&k.name, "name", "", "the name of the Secret with the private key; not needed if the controller has its --signing-key-secret")
	flags.StringVar(&k.clusterName, "cluster-name", "", "the name of this cluster in reports; not needed if the controller has its --cluster-name")
	return cmd
}

func (k *creatingKeys) public(ctx context.Context) error {
	open, at, err := k.place(ctx)
	if err != nil {
		return err
	}
	k.name = cmp.Or(k.name, at.signing, signingSecret)
	entry, err := publicEntry(at.clusterName, k.name)
	if err != nil {
		return err
	}
	data, err := SecretData(ctx, open, at.namespace, k.name)
	if err != nil {
		return err
	}
	key, err := SigningKeyIn(k.name, data)
	if err != nil {
		return err
	}
	return k.writePublic(at, entry, key)
}

func newKeysList(p *program.Program) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the keys that reports are signed and verified with",
		Long: `List the key that this cluster signs its reports with, and those that it trusts
reports of other clusters by. A report names the key that has signed it by its
fingerprint, as this list does. CLUSTER is the cluster that a key may sign for: the name
of its entry says it, and any.pub may sign for every cluster.

It reads the Secrets that the flags of the controller name. An Environment can name
another one with trusted keys, in its spec.backend.verify. Exit code 2 if a key is
missing or cannot be read.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return listKeys(cmd.Context(), p) },
	}
}

func listKeys(ctx context.Context, p *program.Program) error {
	open, err := p.Connect(ctx)
	if err != nil {
		return err
	}
	at, err := findPlace(ctx, p, open)
	if err != nil {
		return err
	}
	if at.isFound && at.signing == "" {
		p.Err.Sentence(show.Warns, "the controller has no --signing-key-secret: it signs no reports")
	}
	if at.isFound && !at.trusts {
		p.Err.Sentence(show.Warns, "the controller has no --trusted-keys-secret: it trusts only keys that an Environment names")
	}
	table := show.Table{Header: []string{"KEY", "USE", "CLUSTER", "SECRET", "ENTRY"}}
	err = errors.Join(listSigning(ctx, p, open, at, &table), listTrusted(ctx, p, open, at, &table))
	if len(table.Rows) > 0 {
		table.Write(p.Out)
	}
	if err != nil {
		return program.Exit{Code: program.No, Err: err}
	}
	return nil
}

func listSigning(ctx context.Context, p *program.Program, open program.Cluster, at keyPlace, table *show.Table) error {
	if at.isFound && at.signing == "" {
		return nil
	}
	name := cmp.Or(at.signing, signingSecret)
	data, err := SecretData(ctx, open, at.namespace, name)
	if err != nil {
		return err
	}
	key, err := SigningKeyIn(name, data)
	if err == nil {
		table.Rows = append(table.Rows, []string{key.String(), "signs", at.clusterName, name, report.SigningEntry})
	}
	return err
}

func listTrusted(ctx context.Context, p *program.Program, open program.Cluster, at keyPlace, table *show.Table) error {
	if at.isFound && !at.trusts {
		return nil
	}
	data, err := SecretData(ctx, open, at.namespace, at.trusted)
	if err != nil {
		return err
	}
	for _, entry := range slices.Sorted(maps.Keys(data)) {
		if !strings.HasSuffix(entry, report.TrustedSuffix) {
			continue
		}
		one, failed := report.ParseTrustedKeys("Secret "+at.trusted, map[string][]byte{entry: data[entry]})
		err = errors.Join(err, failed)
		for _, id := range one.IDs() {
			table.Rows = append(table.Rows, []string{id, "is trusted", report.ClusterOf(entry), at.trusted, entry})
		}
	}
	_, all := report.ParseTrustedKeys("Secret "+at.trusted, data)
	return cmp.Or(err, all)
}

// SecretData reads a Secret.
func SecretData(ctx context.Context, open program.Cluster, namespace, name string) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	switch err := open.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no Secret %s/%s", namespace, name)
	case err != nil:
		return nil, fmt.Errorf("read Secret %s/%s: %w", namespace, name, err)
	}
	return secret.Data, nil
}

// SigningKeyIn returns the private key that a Secret holds. Its errors quote nothing of it.
func SigningKeyIn(name string, data map[string][]byte) (report.SigningKey, error) {
	text, found := data[report.SigningEntry]
	if !found {
		return report.SigningKey{}, fmt.Errorf("there is no %s in Secret %s, and so no private key", report.SigningEntry, name)
	}
	key, err := report.ParseSigningKey(text)
	if err != nil {
		return report.SigningKey{}, fmt.Errorf("read %s of Secret %s: %w", report.SigningEntry, name, err)
	}
	return key, nil
}
