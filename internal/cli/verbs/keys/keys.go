// SPDX-License-Identifier: Apache-2.0

// Package keys has the verb keys: which keys sign the reports of environments, and whom a
// cluster trusts.
package keys

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/report"
)

// Names of the Secrets with keys, unless the controller or the user has others. They
// differ in more than one letter: one of them must not get to another cluster.
const (
	signingSecret = "promotion-signing-key"
	trustedSecret = "promotion-keys"
)

// NewKeys groups the verbs for the keys that reports of environments are signed with.
func NewKeys(p *program.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "keys", Short: "Create and compare the keys of reports between clusters",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newKeysCreate(p), newKeysPublic(p), newKeysList(p))
	return cmd
}

type creatingKeys struct {
	*program.Program
	name, clusterName, algorithm, publicFile string
	export                                   bool
}

func newKeysCreate(p *program.Program) *cobra.Command {
	k := &creatingKeys{Program: p}
	cmd := &cobra.Command{
		Use: "create", Short: "Create the key that this cluster signs its reports with",
		Long: `Create the key that this cluster signs the reports of its environments with.

The private key goes into a Secret in the namespace of the controller, and is shown
nowhere. The output is a manifest with the public key, for the clusters of the
environments that come after those of this one.

With --export, nothing is written to the cluster: the output is the manifest with the
private key, for a program that encrypts it, such as sops or kubeseal, and the public
key goes to a file.

An existing key is never overwritten. To replace it, create a second one under another
name, add its public key to the other clusters, give its name to the controller with
--signing-key-secret, and remove the old public key once the reports are signed again.`,
		Example: fmt.Sprintf(`  # In the cluster of kubeconfig, and its public key for the cluster of production
  %[1]s keys create --cluster-name staging-eu > promotion-keys.yaml
  # For Git: only the encrypted form is stored
  %[1]s keys create --cluster-name staging-eu -n kuberik-system --export --public promotion-keys.yaml | kubeseal -o yaml > sealed.yaml
  # A second key, to replace the first one
  %[1]s keys create --name promotion-signing-key-2 > promotion-keys.yaml`, p.Called),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return k.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&k.name, "name", signingSecret, "the name of the Secret with the private key")
	flags.StringVar(&k.clusterName, "cluster-name", "", "the name of this cluster in reports; not needed if the controller has its --cluster-name")
	flags.StringVar(&k.algorithm, "algorithm", string(report.Ed25519), "ed25519 or ecdsa (on the curve P-256)")
	flags.BoolVar(&k.export, "export", false, "write the manifest with the private key to the output, and nothing to the cluster")
	flags.StringVar(&k.publicFile, "public", "", "write the manifest with the public key to this new file; required with --export")
	return cmd
}

func (k *creatingKeys) run(ctx context.Context) error {
	if err := k.check(); err != nil {
		return err
	}
	open, at, err := k.place(ctx)
	if err != nil {
		return err
	}
	entry, err := publicEntry(at.clusterName, k.name)
	if err != nil {
		return err
	}
	key, err := report.Generate(report.Algorithm(strings.ToLower(k.algorithm)), rand.Reader)
	if err != nil {
		return fmt.Errorf("--algorithm: %w", err)
	}
	if err := k.write(ctx, open, at, entry, key); err != nil {
		return err
	}
	k.next(at, key)
	return nil
}

// write writes both keys. An exported private key is written last: if there is no room for
// its public key, it is worth nothing.
func (k *creatingKeys) write(ctx context.Context, open program.Cluster, at keyPlace, entry string, key report.SigningKey) error {
	if !k.export {
		if err := k.create(ctx, open, at, key); err != nil {
			return err
		}
		return k.writePublic(at, entry, key)
	}
	if err := k.writePublic(at, entry, key); err != nil {
		return err
	}
	return k.writePrivate(at, key)
}

func (k *creatingKeys) check() error {
	switch {
	case k.export && k.publicFile == "":
		return errors.New("say which new file gets the public key, with --public: the output gets the private key")
	case k.export && k.Out.Width > 0:
		return errors.New("the private key would be shown on the terminal: pipe the output to a program that encrypts it, such as sops or kubeseal")
	}
	return nil
}

// place returns where the key belongs. If the user says everything, no cluster is asked.
func (k *creatingKeys) place(ctx context.Context) (program.Cluster, keyPlace, error) {
	at := keyPlace{clusterName: k.clusterName, trusted: trustedSecret}
	if given := k.Kubeconfig.Namespace; k.export && k.clusterName != "" && given != nil && *given != "" {
		at.namespace = *given
		return program.Cluster{}, at, nil
	}
	open, err := k.Connect(ctx)
	if err != nil {
		return program.Cluster{}, at, err
	}
	found, err := findPlace(ctx, k.Program, open)
	found.clusterName = cmp.Or(k.clusterName, found.clusterName)
	if err == nil && found.clusterName == "" {
		err = errors.New("the controller has no --cluster-name yet: say how reports are to call this cluster, with --cluster-name")
	}
	return open, found, err
}

// publicEntry returns the key of a Secret for a public key. A second private key must not have
// that of the first one: both are trusted while one replaces the other.
func publicEntry(clusterName, secret string) (string, error) {
	if !report.IsCluster(clusterName) {
		return "", fmt.Errorf("%q cannot be the name of a cluster: it has letters, digits, \"-\" and \"_\", and is not \"any\"", clusterName)
	}
	entry := clusterName + report.TrustedSuffix
	if secret != signingSecret {
		entry = clusterName + "." + secret + report.TrustedSuffix
	}
	if wrong := validation.IsConfigMapKey(entry); len(wrong) > 0 {
		return "", fmt.Errorf("%q cannot be a key of a Secret: %s", entry, strings.Join(wrong, "; "))
	}
	return entry, nil
}

// create stores the private key in the cluster.
func (k *creatingKeys) create(ctx context.Context, open program.Cluster, at keyPlace, key report.SigningKey) error {
	private, err := key.PrivatePEM()
	if err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: at.namespace, Name: k.name}, Data: map[string][]byte{report.SigningEntry: private},
	}
	switch err := open.Client.Create(ctx, secret, client.FieldOwner(program.FieldManager)); {
	case apierrors.IsAlreadyExists(err):
		return program.Refuse("Secret %s/%s exists already, and is not overwritten: others trust its key\nto replace it, create a second one: %s\nits public key: %s",
			at.namespace, k.name, k.CommandLine(at.namespace, "keys", "create", "--name", signingSecret+"-2"), k.CommandLine(at.namespace, "keys", "public", "--name", k.name))
	case err != nil:
		return fmt.Errorf("create Secret %s/%s: %w", at.namespace, k.name, err)
	}
	k.Err.Sentence(show.Well, "Secret %s/%s has the new private key %s", at.namespace, k.name, key)
	return nil
}

// writePrivate writes the manifest with the private key.
func (k *creatingKeys) writePrivate(at keyPlace, key report.SigningKey) error {
	private, err := key.PrivatePEM()
	if err != nil {
		return err
	}
	return writeSecret(k.Out.Out, at.namespace, k.name, report.SigningEntry, private)
}

// writePublic writes the manifest with the public key, to a file if there is to be one.
func (k *creatingKeys) writePublic(at keyPlace, entry string, key report.SigningKey) error {
	public, err := key.PublicPEM()
	if err != nil {
		return err
	}
	if k.publicFile == "" {
		return writeSecret(k.Out.Out, at.namespace, at.trusted, entry, public)
	}
	file, err := os.OpenFile(k.publicFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("write the public key: %w", err)
	}
	return errors.Join(writeSecret(file, at.namespace, at.trusted, entry, public), file.Close())
}

// next says what makes the key count. It does not say it of what is so already.
func (k *creatingKeys) next(at keyPlace, key report.SigningKey) {
	if k.export {
		k.Err.Sentence(show.Well, "the output has the new private key %s, for Secret %s/%s", key, at.namespace, k.name)
	}
	if at.signing != k.name || at.controllerName != at.clusterName {
		k.Err.Sentence(show.Do, "start the controller here with --cluster-name=%s --signing-key-secret=%s", at.clusterName, k.name)
	}
	k.Err.Sentence(show.Do, "add the public key to Secret %s of the clusters with the environments after those of %s", at.trusted, at.clusterName)
}

// secretManifest is a Secret as users write it: readable before it is encrypted.
type secretManifest struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	StringData map[string]string `json:"stringData"`
}

func writeSecret(out io.Writer, namespace, name, entry string, content []byte) error {
	manifest := secretManifest{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, StringData: map[string]string{entry: string(content)}}
	manifest.Metadata.Namespace, manifest.Metadata.Name = namespace, name
	text, err := yaml.Marshal(manifest)
	if err == nil {
		_, err = out.Write(text)
	}
	if err != nil {
		return fmt.Errorf("write Secret %s: %w", name, err)
	}
	return nil
}
