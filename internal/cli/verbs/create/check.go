// SPDX-License-Identifier: Apache-2.0

package create

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/cli/kinds"
	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/cli/snapshot"
)

// world is what is there: in the cluster, or in the files of -f and nowhere else.
type world struct {
	client.Reader
	open      program.Cluster
	facts     *snapshot.Snapshot
	scheme    *runtime.Scheme
	namespace string
	// files are the contents of the files by their names; nil for a cluster.
	files map[string][]byte
}

// look reads what is there.
func (c *creating) look(ctx context.Context) (*world, error) {
	namespace, err := c.Namespace()
	if err != nil {
		return nil, err
	}
	if len(c.Files) > 0 && !c.export {
		return nil, errors.New("-f says what is in Git, and goes together with --export")
	}
	if c.export && (c.local || len(c.Files) > 0) {
		return c.read(namespace)
	}
	open, err := c.Connect(ctx)
	if err != nil {
		return nil, err
	}
	facts, err := c.Take(ctx, open, namespace, c.laid...)
	return &world{Reader: open.Client, open: open, facts: facts, scheme: open.Scheme, namespace: namespace}, err
}

// read reads the files, and no cluster.
func (c *creating) read(namespace string) (*world, error) {
	scheme, _, err := program.NewScheme(imagev1.GroupVersion.Version)
	if err != nil {
		return nil, err
	}
	objects, err := c.DecodeFiles(scheme, namespace)
	if err != nil {
		return nil, err
	}
	facts, err := snapshot.New(scheme, objects...)
	if err != nil {
		return nil, err
	}
	w := &world{Reader: facts, facts: facts, scheme: scheme, namespace: namespace, files: map[string][]byte{}}
	for _, name := range c.Files {
		if w.files[name], err = c.ReadFile(name); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// stored returns an object as it is stored.
func (w *world) stored(ctx context.Context, m manifest) (manifest, error) {
	found, err := w.scheme.New(m.GroupVersionKind())
	if err != nil {
		return manifest{}, fmt.Errorf("make a %s: %w", m.GetKind(), err)
	}
	into := found.(client.Object)
	if err := w.Get(ctx, client.ObjectKeyFromObject(m), into); err != nil {
		return manifest{}, err
	}
	return w.manifestOf(into)
}

// objects returns what is there of the kinds that lint is about. It returns false if some of
// it could not be read.
func (w *world) objects(ctx context.Context) (all []map[string]any, complete bool) {
	complete = w.files == nil
	for _, kind := range kinds.All {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if w.facts.List(ctx, list) != nil {
			complete = false
			continue
		}
		for _, item := range list.Items {
			all = append(all, item.Object)
		}
	}
	return all, complete
}

// foretell says what is created, and what it does. It ends the verb if something would not
// work.
func (c *creating) foretell(ctx context.Context, w *world, p *plan, all []manifest) error {
	for _, each := range all {
		if p.isAnnotation(each) {
			c.Err.Sentence(show.Do, "%s: the annotation %s", each, strings.Join(slices.Sorted(maps.Keys(each.GetAnnotations())), ", "))
		} else {
			c.Err.Sentence(show.Do, "%s: new", each)
		}
	}
	findings, err := c.added(ctx, w, p)
	if err != nil {
		return err
	}
	if err := c.judge(findings); err != nil {
		return err
	}
	after := *w
	if after.facts, err = w.facts.With(p.all()...); err != nil {
		return err
	}
	effect, err := p.effect(ctx, &after)
	if err == nil {
		c.Err.Sentence(show.Do, "%s", effect)
	}
	return err
}

// absent are the rules of lint that something does not exist.
var absent = []string{"R201", "R207", "R212", "R301", "R303", "R603"}

// added returns what lint finds after a plan, and did not find before.
func (c *creating) added(ctx context.Context, w *world, p *plan) ([]lint.Finding, error) {
	before, complete := w.objects(ctx)
	options := lint.Options{Now: c.Now()}
	if !complete {
		options.Disable = absent
	}
	after := slices.Clone(before)
	laid, err := w.manifestsOf(p.all())
	for _, each := range laid {
		after = slices.DeleteFunc(after, func(content map[string]any) bool {
			return manifest{&unstructured.Unstructured{Object: content}}.String() == each.String()
		})
		after = append(after, each.Object)
	}
	known := lint.Cluster(before, options).Findings
	return slices.DeleteFunc(lint.Cluster(after, options).Findings, func(f lint.Finding) bool {
		return slices.Contains(known, f) || w.isElsewhere(f)
	}), err
}

// isElsewhere reports whether a finding is about an object of another namespace, of which only
// a part was read. That an Environment there does not let this one in is certain.
func (w *world) isElsewhere(f lint.Finding) bool {
	_, name, _ := strings.Cut(f.Object, " ")
	namespace, _, namespaced := strings.Cut(name, "/")
	return namespaced && namespace != w.namespace && f.Rule != "R604"
}

// judge shows findings, and ends the verb if one of them is an error.
func (c *creating) judge(findings []lint.Finding) error {
	wrong, shown := 0, map[string]bool{}
	for _, f := range findings {
		if shown[f.Rule+f.Message] {
			continue
		}
		shown[f.Rule+f.Message] = true
		sign := show.Warns
		if f.Severity == lint.SeverityError {
			sign = show.Bad
			wrong++
		}
		c.Err.Sentence(sign, "%s  %s", f.Rule, f.Message)
		if f.Remedy != "" {
			c.Err.Line("    %s %s", c.Err.Sign(show.Do), f.Remedy)
		}
	}
	if wrong > 0 {
		return program.Refuse("nothing was created: it would not work")
	}
	return nil
}

// print writes the objects as YAML for Git, if lint finds nothing wrong in it.
func (c *creating) print(ctx context.Context, w *world, p *plan) error {
	all, err := w.manifestsOf(p.objects)
	if err != nil {
		return err
	}
	all = append(all, p.git...)
	file, err := yamlOf(all)
	if err != nil {
		return err
	}
	options := lint.Options{Now: c.Now(), External: append(w.externals(ctx), p.external...)}
	findings := lint.Files([]lint.File{{Content: file}}, options).Findings
	if !c.local {
		added, err := c.added(ctx, w, p)
		if err != nil {
			return err
		}
		findings = append(added, findings...)
	}
	if err := c.judge(findings); err != nil {
		return err
	}
	if _, err := c.Out.Out.Write(file); err != nil {
		return err
	}
	return c.after(p)
}

// externals returns what is there as the files of others.
func (w *world) externals(ctx context.Context) []lint.External {
	var all []lint.External
	objects, _ := w.objects(ctx)
	for _, content := range objects {
		object := unstructured.Unstructured{Object: content}
		all = append(all, lint.External{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()})
	}
	return all
}
