// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mostLevels is how deep Flux objects that apply other Flux objects are followed.
const mostLevels = 5

// labelledKinds are the kinds that are looked for below a HelmRelease without an
// inventory: those whose objects run.
var labelledKinds = []schema.GroupVersionKind{
	appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
	appsv1.SchemeGroupVersion.WithKind("Deployment"),
	appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
	batchv1.SchemeGroupVersion.WithKind("Job"),
}

// below reads what lies below the targets.
type below struct {
	*reading

	// known are the objects that are in the tree already. Flux objects can apply each
	// other in a circle.
	known map[Object]bool
	// workloads are those that were read, in the order of the tree.
	workloads []read
}

// read is an object that was read, with its node.
type read struct {
	node   *Node
	object *unstructured.Unstructured
}

// fill adds the objects below, level by level, and then the pods that do not start.
func (b *below) fill(ctx context.Context, level []applied) {
	for _, a := range level {
		target := *a.by.Object
		target.UID = "" // an inventory has none
		b.known[target] = true
	}
	for range mostLevels {
		if len(level) == 0 {
			break
		}
		level = b.expand(ctx, level)
	}
	for _, a := range level {
		a.by.Children = append(a.by.Children, unread(len(a.objects), fmt.Sprintf("at most %d levels of Flux objects are followed", mostLevels)))
	}
	b.readPods(ctx)
}

// expand adds what the Flux objects of a level have applied. It returns the Flux objects
// among that.
func (b *below) expand(ctx context.Context, level []applied) []applied {
	var loads []*load
	for _, a := range level {
		loads = append(loads, b.load(ctx, a))
	}
	b.wait()
	var next []applied
	for _, l := range loads {
		next = append(next, b.attach(l)...)
	}
	return next
}

// load is what is read for one Flux object.
type load struct {
	applied

	// results has a place for each batch, so that requests need no lock.
	batches []batch
	results []map[string]found
	// omitted is how many objects are not read because of the limit.
	omitted int
}

// load starts the requests for what a Flux object has applied.
func (b *below) load(ctx context.Context, a applied) *load {
	l := &load{applied: a}
	if a.elsewhere {
		return l
	}
	if a.unlisted != "" {
		b.loadLabelled(ctx, l)
		return l
	}
	l.objects = slices.DeleteFunc(l.objects, func(o Object) bool {
		was := b.known[o]
		b.known[o] = true
		return was
	})
	granted := b.take(len(l.objects))
	l.omitted, l.objects = len(l.objects)-granted, l.objects[:granted]
	l.batches = batchesOf(l.objects, a.labels)
	l.results = make([]map[string]found, len(l.batches))
	for i := range l.batches {
		b.start(func() { l.results[i] = b.read(ctx, l.batches[i]) })
	}
	return l
}

// batchesOf puts objects of one kind and namespace together, except Secrets.
func batchesOf(objects []Object, having client.MatchingLabels) []batch {
	var all []batch
	for _, o := range objects {
		if isSecret(o) {
			continue
		}
		kind := o.GroupKind().WithVersion(o.Version)
		if last := len(all) - 1; last < 0 || all[last].kind != kind || all[last].namespace != o.Namespace {
			all = append(all, batch{kind: kind, namespace: o.Namespace, having: having})
		}
		last := &all[len(all)-1]
		last.names = append(last.names, o.Name)
	}
	return all
}

// loadLabelled starts the requests for what has the labels of a Flux object.
func (b *below) loadLabelled(ctx context.Context, l *load) {
	l.results = make([]map[string]found, len(labelledKinds))
	for i, kind := range labelledKinds {
		l.batches = append(l.batches, batch{kind: kind, namespace: l.unlisted})
		b.start(func() {
			objects, err := b.objects(ctx, kind, l.unlisted, l.labels)
			granted := b.take(len(objects))
			if more := len(objects) - granted; more > 0 {
				err = fmt.Errorf("%d more were found, and at most %d objects are read for one tree", more, b.limits.Objects)
			}
			l.results[i] = labelled(objects[:granted], err)
		})
	}
}

func labelled(objects []unstructured.Unstructured, err error) map[string]found {
	all := map[string]found{}
	for i := range objects {
		all[objects[i].GetName()] = found{object: &objects[i]}
	}
	if err != nil {
		all["*"] = found{err: err} // no object has such a name
	}
	return all
}

// attach adds nodes for what was read, and returns the Flux objects among them.
func (b *below) attach(l *load) []applied {
	if node := l.malformed(); node != nil {
		l.by.Children = append(l.by.Children, node)
	}
	switch {
	case l.elsewhere:
		l.attachElsewhere()
		return nil
	case l.unlisted != "":
		l.nameLabelled()
	}
	var next []applied
	for _, o := range l.objects {
		node := &Node{Object: &o}
		l.by.Children = append(l.by.Children, node)
		if flux := b.show(node, l.find(o), l.absence); flux != nil {
			next = append(next, *flux)
		}
	}
	if l.omitted > 0 {
		l.by.Children = append(l.by.Children, unread(l.omitted, fmt.Sprintf("at most %d are read for one tree", b.limits.Objects)))
	}
	return next
}

// attachElsewhere marks what is in another cluster. Flux's own report of it is in the
// node of the Flux object.
func (l *load) attachElsewhere() {
	l.by.Text = joined(l.by.Text, "applies to another cluster (spec.kubeConfig)")
	for _, o := range l.objects {
		l.by.Children = append(l.by.Children, &Node{Object: &o, Sign: Unknown, Text: "in another cluster, and not read"})
	}
}

// nameLabelled makes the objects that were found by their labels those of the load.
func (l *load) nameLabelled() {
	l.by.Text = joined(l.by.Text, "Flux records no inventory of it: only its Deployments, StatefulSets, DaemonSets and Jobs are shown")
	for i, b := range l.batches {
		for _, name := range slices.Sorted(maps.Keys(l.results[i])) {
			l.objects = append(l.objects, Object{
				Group: b.kind.Group, Version: b.kind.Version, Kind: b.kind.Kind, Namespace: b.namespace, Name: name,
			})
		}
	}
}

// find returns what was read of an object; nothing for a Secret.
func (l *load) find(o Object) found {
	for i, b := range l.batches {
		if b.kind == o.GroupKind().WithVersion(o.Version) && b.namespace == o.Namespace {
			if f, ok := l.results[i][o.Name]; ok {
				return f
			}
		}
	}
	return found{}
}

// show fills the node of an object with what was read of it, or with what becomes of it if
// it does not exist. It returns what the object has applied, if it is a Kustomization or a
// HelmRelease.
func (b *below) show(node *Node, f found, absence string) *applied {
	switch {
	case apierrors.IsNotFound(f.err):
		node.say(Waits, absence)
		return nil
	case f.err != nil:
		node.say(Unknown, because(f.err))
		return nil
	case f.object == nil:
		node.Sign, node.Message = Well, "Secrets are not read; Flux has applied it"
		return nil
	}
	node.show(f.object)
	if isWorkload(*node.Object) {
		b.workloads = append(b.workloads, read{node, f.object})
	}
	return fluxIn(node, f.object)
}

// fluxIn returns what an object has applied; nil if it applies nothing.
func fluxIn(node *Node, object *unstructured.Unstructured) *applied {
	var flux client.Object
	switch object.GroupVersionKind().GroupKind() {
	case kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind).GroupKind():
		flux = &kustomizev1.Kustomization{}
	case helmv2.GroupVersion.WithKind(helmv2.HelmReleaseKind).GroupKind():
		flux = &helmv2.HelmRelease{}
	default:
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, flux); err != nil {
		node.say(Unknown, "it cannot be understood: "+err.Error())
		return nil
	}
	a := appliedOf(node, flux)
	return &a
}

// unread returns a node for objects that were not read.
func unread(count int, why string) *Node {
	noun := "objects"
	if count == 1 {
		noun = "object"
	}
	node := missing("not read", fmt.Sprintf("%d %s not read: %s", count, noun, why))
	node.Folded = &Folded{Count: count}
	return node
}

// missing returns a node that says what the tree does not show.
func missing(name, text string) *Node {
	return &Node{Name: name, Sign: Unknown, Text: text, Message: text}
}

// say sets the state of a node.
func (n *Node) say(sign Sign, text string) { n.Sign, n.Text, n.Message = sign, text, text }

// joined returns texts that are not empty as one.
func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(t string) bool { return t == "" }), "; ")
}
