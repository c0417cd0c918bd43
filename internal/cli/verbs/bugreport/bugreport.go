// SPDX-License-Identifier: Apache-2.0

// Package bugreport has the verb bug-report: what decided about a Rollout as a file, without
// passwords, and without names if the user wants that.
package bugreport

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/cli/tree"
	"github.com/fluxrollouts/rollout-controller/internal/cli/verbs/inspect"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

type reporting struct {
	*program.Program
	file   string
	redact bool
}

// NewBugReport returns the verb bug-report.
func NewBugReport(p *program.Program) *cobra.Command {
	r := &reporting{Program: p}
	cmd := &cobra.Command{
		Use: "bug-report NAME", Short: "Collect what a decision depends on in one file",
		Long: `Collect the objects that the decision about a Rollout depends on, their events, and the
explanation in one file. There is never a Secret or a ConfigMap in it, no value of a
header, and of the variables, values and patches of targets only what Rollouts write.

explain, simulate, status and history read it with -f, without a cluster.`,
		Example: fmt.Sprintf(`  %[1]s bug-report shop --redact
  # With the names that it has printed
  %[1]s explain name-2 -n name-1 -f rollout-20261121-1405.tar.gz`, p.Called),
		Args: program.OneName(0, "the name of a Rollout"), ValidArgsFunction: p.CompleteRollouts,
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().StringVarP(&r.file, "output-file", "O", "", "the file to write; if it is not given, NAME-DATE-TIME.tar.gz, or with --redact rollout-DATE-TIME.tar.gz")
	cmd.Flags().BoolVar(&r.redact, "redact", false, "replace names of objects, users and images, each by the same word everywhere")
	return cmd
}

func (r *reporting) run(ctx context.Context, name string) error {
	v, err := r.View(ctx, name, r.Now())
	if err != nil {
		return err
	}
	events := tree.Events(ctx, v.Below, inspect.Tree(ctx, v))
	objects, err := objectsOf(ctx, v)
	if err != nil {
		return err
	}
	explanation := inspect.Explanation(v, inspect.Remedied)
	words := redactionsOf(nil)
	if r.redact {
		words = redactionsOf(objects, v.Rollout.Namespace, v.Rollout.Name)
	}
	content, err := r.pack(objects, events, explanation, words)
	if err != nil {
		return err
	}
	if r.redact {
		name = "rollout" // a file name is read by others, too
	}
	if r.file == "" {
		r.file = fmt.Sprintf("%s-%s%s", name, r.Now().In(r.Zone).Format("20060102-1504"), program.ReportSuffix)
	}
	if err := os.WriteFile(r.file, content, 0o600); err != nil {
		return err
	}
	r.Out.Sentence(show.Well, "%s: Rollout %s/%s, %s, %s, the explanation; no Secrets, no ConfigMaps. Look through it before you send it",
		r.file, words.in(v.Rollout.Namespace), words.in(v.Rollout.Name), verdict.Count(len(objects), "object"), verdict.Count(len(events.Items), "event"))
	return nil
}

// removePasswords removes from an object what may be a password: the values of headers, and
// the copy of the whole object that kubectl apply keeps.
func removePasswords(object map[string]any) {
	unstructured.RemoveNestedField(object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	for header := range headersOf(object) {
		header["value"] = "removed"
	}
}

// objectsOf returns what the decision depends on, as it was read, but without what may be
// a password.
func objectsOf(ctx context.Context, v program.View) ([]map[string]any, error) {
	scheme, _, err := program.NewScheme(imagev1.GroupVersion.Version)
	if err != nil {
		return nil, err
	}
	all, err := dependenciesOf(ctx, v)
	if err != nil {
		return nil, err
	}
	var generic []map[string]any
	for _, object := range all {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", object.GetName(), err)
		}
		kind, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", object.GetName(), err)
		}
		content["apiVersion"], content["kind"] = kind.ToAPIVersionAndKind()
		removePasswords(content)
		generic = append(generic, content)
	}
	return generic, nil
}

// pack returns a report as bytes.
func (r *reporting) pack(objects []map[string]any, events tree.EventList, explanation explain.Explanation, words redactions) ([]byte, error) {
	files := map[string]any{"events.yaml": events, "explanation.yaml": explanation, "version.yaml": map[string]string{"flux-rollout": r.Version}}
	for name, content := range files {
		generic, err := toJSON(content)
		if err != nil {
			return nil, err
		}
		files[name] = generic
	}
	said := recordsOf(objects)
	for _, object := range objects {
		words.redact(object)
	}
	recordAgain(objects, said)
	for _, content := range files {
		words.redact(content)
	}
	documents, err := asDocuments(objects)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	archive := tar.NewWriter(compressed)
	err = r.add(archive, program.ObjectsFile, documents)
	for _, name := range []string{"events.yaml", "explanation.yaml", "version.yaml"} {
		text, failed := yaml.Marshal(files[name])
		err = errors.Join(err, failed, r.add(archive, name, text))
	}
	err = errors.Join(err, archive.Close(), compressed.Close())
	return packed.Bytes(), err
}

// record has hashes of what an Environment says of its releases, and of what it has read of
// each upstream in another cluster, in the order of its status. They are empty where there
// is nothing.
type record struct {
	own       string
	upstreams []string
}

// recordsOf returns the record of each Environment, by its place; an empty one for other
// objects.
func recordsOf(objects []map[string]any) []record {
	all := make([]record, len(objects))
	for i, object := range objects {
		e := &environmentsv1.Environment{}
		if object["kind"] != environmentsv1.EnvironmentKind || runtime.DefaultUnstructuredConverter.FromUnstructured(object, e) != nil {
			continue
		}
		all[i].own = environment.Digest(e.Status.Releases)
		for _, u := range e.Status.Upstreams {
			digest := ""
			if len(u.Releases) > 0 {
				digest = environment.Observed(u.Sequence, u.Releases)
			}
			all[i].upstreams = append(all[i].upstreams, digest)
		}
	}
	return all
}

// recordAgain corrects the hashes of what Environments have read of each other after names
// were replaced in it. Without that, nothing would be known of how long releases soak.
func recordAgain(objects []map[string]any, said []record) {
	now, after := map[string]string{"": ""}, recordsOf(objects)
	for i := range after {
		now[said[i].own] = after[i].own
		for n, digest := range after[i].upstreams {
			now[said[i].upstreams[n]] = digest
		}
	}
	for i, object := range objects {
		upstreams, _, _ := unstructured.NestedSlice(object, "status", "upstreams")
		for _, upstream := range upstreams {
			fields, _ := upstream.(map[string]any)
			if digest, _ := fields["observedDigest"].(string); now[digest] != "" {
				fields["observedDigest"] = now[digest]
			}
		}
		if said[i].own != "" && upstreams != nil {
			_ = unstructured.SetNestedSlice(object, upstreams, "status", "upstreams") // it was read from there
		}
	}
}

func toJSON(content any) (any, error) {
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encode the report: %w", err)
	}
	var generic any
	return generic, json.Unmarshal(raw, &generic)
}

func asDocuments(objects []map[string]any) ([]byte, error) {
	var all bytes.Buffer
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("encode the report: %w", err)
		}
		all.WriteString("---\n")
		all.Write(text)
	}
	return all.Bytes(), nil
}

func (r *reporting) add(archive *tar.Writer, name string, content []byte) error {
	header := &tar.Header{Name: name, Mode: 0o600, Size: int64(len(content)), ModTime: r.Now().Truncate(time.Second)}
	if err := archive.WriteHeader(header); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	_, err := archive.Write(content)
	return err
}
