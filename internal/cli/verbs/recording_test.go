// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/config"
	"github.com/fluxrollouts/rollout-controller/internal/cli/kinds"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/snapshot"
)

// recording is a cluster made of the objects in a file. It changes nothing: it records
// the patches that it gets.
type recording struct {
	client.WithWatch // whatever the scripts do not need

	facts  *snapshot.Snapshot
	scheme *runtime.Scheme
	// patches is the file that gets them.
	patches string
	// anonymous is true for an API server that does not say who the user is.
	anonymous bool
	// denied are verbs on Rollouts that the user does not have.
	denied []string
	// before is called before a patch is answered.
	before func() error
	// changes is what a watch of Rollouts reads, after those in the file.
	changes io.Reader
}

// withoutKinds makes reads of some kinds fail: those that the API server does not serve,
// and those that the user may not read. Each list has names of kinds, with commas between.
func (r *recording) withoutKinds(unserved, forbidden string) error {
	for _, kind := range kinds.All {
		var err error
		switch {
		case slices.Contains(strings.Split(unserved, ","), kind.Kind):
			err = &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
		case slices.Contains(strings.Split(forbidden, ","), kind.Kind):
			err = apierrors.NewForbidden(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, "", errors.New("no right"))
		default:
			continue
		}
		example := &unstructured.Unstructured{}
		example.SetGroupVersionKind(kind.GroupVersionKind)
		if err := r.facts.Fail(example, err); err != nil {
			return err
		}
	}
	return nil
}

func openRecording(objects, patches string) (program.Cluster, *recording, error) {
	scheme, mapper, err := program.NewScheme(imagev1.GroupVersion.Version)
	if err != nil {
		return program.Cluster{}, nil, err
	}
	content, err := os.ReadFile(objects)
	if err != nil {
		return program.Cluster{}, nil, err
	}
	decoded, err := snapshot.Decode(scheme, content)
	if err != nil {
		return program.Cluster{}, nil, err
	}
	vouching, err := policies(scheme)
	if err != nil {
		return program.Cluster{}, nil, err
	}
	facts, err := snapshot.New(scheme, append(vouching, decoded...)...)
	r := &recording{facts: facts, scheme: scheme, patches: patches}
	return program.Cluster{Client: r, Scheme: scheme, Mapper: mapper}, r, err
}

// policies returns those that vouch for the names in approvals, since long.
func policies(scheme *runtime.Scheme) ([]client.Object, error) {
	all, err := snapshot.Decode(scheme, bytes.Join(config.Policies(), []byte("\n---\n")))
	for _, o := range all {
		o.SetGeneration(1)
		o.SetCreationTimestamp(metav1.NewTime(noon.Add(-30 * 24 * time.Hour)))
	}
	return all, err
}

// withoutPolicies removes those that vouch for names, or makes them fail.
func (r *recording) withoutPolicies(how string) error {
	all, err := policies(r.scheme)
	if err != nil || how == "" {
		return err
	}
	if r.facts, err = r.facts.Without(all...); err != nil || how == "missing" {
		return err
	}
	for _, o := range all {
		err = errors.Join(err, r.facts.FailOne(o, apierrors.NewForbidden(schema.GroupResource{Resource: "policies"}, o.GetName(), errors.New("no right"))))
	}
	return err
}

func (r *recording) Get(ctx context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	return r.facts.Get(ctx, key, object)
}

func (r *recording) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return r.facts.List(ctx, list, options...)
}

// Watch begins with the Rollouts of the file, and goes on with the changes.
func (r *recording) Watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	if err := r.List(ctx, list, options...); err != nil {
		return nil, err
	}
	events := make(chan watch.Event)
	watching := watch.NewProxyWatcher(events)
	send := func(kind watch.EventType, rollout *v1alpha1.Rollout) {
		rollout.ResourceVersion = "1"
		select {
		case events <- watch.Event{Type: kind, Object: rollout}:
		case <-watching.StopChan():
		}
	}
	go func() {
		defer close(events)
		for i := range list.(*v1alpha1.RolloutList).Items {
			send(watch.Added, &list.(*v1alpha1.RolloutList).Items[i])
		}
		send(watch.Bookmark, &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}})
		for changes := json.NewDecoder(r.changes); ; {
			var change rolloutChange
			if changes.Decode(&change) != nil {
				return
			}
			send(change.Type, change.Rollout)
		}
	}()
	return watching, nil
}

// rolloutChange is one event of a watch.
type rolloutChange struct {
	Type    watch.EventType
	Rollout *v1alpha1.Rollout
}

// Create answers who the user is, and records other objects as a patch.
func (r *recording) Create(_ context.Context, object client.Object, options ...client.CreateOption) error {
	if asked, is := object.(*authorizationv1.SelfSubjectAccessReview); is {
		asked.Status.Allowed = !slices.Contains(r.denied, asked.Spec.ResourceAttributes.Verb)
		return nil
	}
	review, isReview := object.(*authenticationv1.SelfSubjectReview)
	switch {
	case !isReview:
		return r.created(object, options)
	case r.anonymous:
		return apierrors.NewNotFound(schema.GroupResource{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"}, "")
	}
	review.Status.UserInfo.Username = "alice@example.com"
	return nil
}

func (r *recording) created(object client.Object, options []client.CreateOption) error {
	if r.before != nil {
		if err := r.before(); err != nil {
			return err
		}
	}
	var applied client.CreateOptions
	applied.ApplyOptions(options)
	text, err := yaml.Marshal(object)
	if err != nil {
		return err
	}
	text = fmt.Appendf(nil, "new %T by %s%s\n%s", object, applied.FieldManager, strings.Join(applied.DryRun, " dry run "), text)
	return os.WriteFile(r.patches, text, 0o600)
}

// Delete records what is deleted.
func (r *recording) Delete(_ context.Context, object client.Object, options ...client.DeleteOption) error {
	var applied client.DeleteOptions
	applied.ApplyOptions(options)
	text := fmt.Sprintf("delete %T %s%s\n", object, object.GetName(), strings.Join(applied.DryRun, " dry run "))
	return os.WriteFile(r.patches, []byte(text), 0o600)
}

func (r *recording) Patch(_ context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if r.before != nil {
		if err := r.before(); err != nil {
			return err
		}
	}
	var applied client.PatchOptions
	applied.ApplyOptions(options)
	raw, err := patch.Data(object)
	if err != nil {
		return err
	}
	readable, err := yaml.JSONToYAML(raw)
	text := fmt.Sprintf("%T %s by %s%s\n%s", object, object.GetName(), applied.FieldManager, strings.Join(applied.DryRun, " dry run "), readable)
	if err != nil {
		return err
	}
	return os.WriteFile(r.patches, []byte(text), 0o600)
}

// Apply records what is applied, after what was applied before. Of a dry run, it records
// only that there was one.
func (r *recording) Apply(_ context.Context, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	var applied client.ApplyOptions
	applied.ApplyOptions(options)
	text, err := yaml.Marshal(object)
	if err != nil {
		return err
	}
	text = fmt.Appendf(nil, "--- applied by %s\n%s", applied.FieldManager, text)
	if len(applied.DryRun) > 0 {
		text = []byte("--- dry run\n")
	}
	before, err := os.ReadFile(r.patches)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.WriteFile(r.patches, append(before, text...), 0o600)
}

// conflict is what the API server answers to a patch of another version of an object.
var conflict = apierrors.NewConflict(schema.GroupResource{Group: "kuberik.com", Resource: "rollouts"}, "shop", fmt.Errorf("it was changed"))
