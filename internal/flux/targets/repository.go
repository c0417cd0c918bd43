// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"fmt"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Repository is an OCIRepository or a GitRepository: a source whose tag can belong to a
// Rollout.
type Repository interface {
	client.Object
	GetArtifact() *meta.Artifact
	GetConditions() []metav1.Condition
}

// Ref names a Repository.
type Ref struct {
	Kind string
	types.NamespacedName
}

// String returns the name of the Repository in a message. The indexes have it, too.
func (r Ref) String() string { return r.Kind + " " + r.NamespacedName.String() }

// isGit reports whether it is a GitRepository. Most Kustomizations consume one, and most of
// these belong to no Rollout.
func (r Ref) isGit() bool { return r.Kind == sourcev1.GitRepositoryKind }

func (r Ref) isRepository() bool { return r.Kind == sourcev1.OCIRepositoryKind || r.isGit() }

// RefTo returns the name of a Repository.
func RefTo(r Repository) Ref {
	return Ref{Kind: repositoryKind(r), NamespacedName: client.ObjectKeyFromObject(r)}
}

// refOf returns a reference of an object to a source, and whether that can be a Repository.
func refOf(o client.Object, kind, namespace, name string) (Ref, bool) {
	if namespace == "" {
		namespace = o.GetNamespace()
	}
	ref := Ref{Kind: kind, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
	return ref, ref.isRepository()
}

// IsGit reports whether an object is a GitRepository.
func IsGit(o client.Object) bool {
	_, is := o.(*sourcev1.GitRepository)
	return is
}

func repositoryKind(r Repository) string {
	if IsGit(r) {
		return sourcev1.GitRepositoryKind
	}
	return sourcev1.OCIRepositoryKind
}

// New returns an empty Repository of the kind.
func (r Ref) New() Repository {
	if r.isGit() {
		return &sourcev1.GitRepository{}
	}
	return &sourcev1.OCIRepository{}
}

// Read returns the Repository; nil if it does not exist, or if it is a GitRepository whose tag
// no Rollout writes. The revision of such a GitRepository is not about any release.
func (r Ref) Read(ctx context.Context, reader client.Reader) (Repository, error) {
	found := r.New()
	err := reader.Get(ctx, r.NamespacedName, found, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err), err == nil && r.isGit() && RolloutOf(found) == "":
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get %s: %w", r, err)
	}
	return found, nil
}

// view is what is read of a Repository, whatever its kind.
type view struct {
	url         string
	hasRef      bool // spec.ref is set
	tag, digest string
	// prefers has the fields of spec.ref that are set and that Flux prefers to the tag, apart
	// from the digest: the first takes precedence over all others.
	prefers     []string
	suspended   bool
	observed    int64
	lastHandled string
}

func viewOf(r Repository) view {
	if git, is := r.(*sourcev1.GitRepository); is {
		return viewOfGit(git)
	}
	oci := r.(*sourcev1.OCIRepository)
	seen := view{
		url: oci.Spec.URL, suspended: oci.Spec.Suspend,
		observed: oci.Status.ObservedGeneration, lastHandled: oci.Status.LastHandledReconcileAt,
	}
	if ref := oci.Spec.Reference; ref != nil {
		seen.hasRef, seen.tag, seen.digest = true, ref.Tag, ref.Digest
		seen.prefers = set("semver", ref.SemVer)
	}
	return seen
}

func viewOfGit(r *sourcev1.GitRepository) view {
	seen := view{
		url: r.Spec.URL, suspended: r.Spec.Suspend,
		observed: r.Status.ObservedGeneration, lastHandled: r.Status.LastHandledReconcileAt,
	}
	if ref := r.Spec.Reference; ref != nil {
		seen.hasRef, seen.tag = true, ref.Tag
		seen.prefers = set("commit", ref.Commit, "name", ref.Name, "semver", ref.SemVer)
	}
	return seen
}

// set returns those of the fields of spec.ref that have a value.
func set(namesAndValues ...string) []string {
	var all []string
	for i := 0; i < len(namesAndValues); i += 2 {
		if namesAndValues[i+1] != "" {
			all = append(all, "spec.ref."+namesAndValues[i])
		}
	}
	return all
}

// revisionOf returns the revision of what Flux has pulled; empty if it has pulled nothing.
func revisionOf(r Repository) string {
	if r == nil || r.GetArtifact() == nil {
		return ""
	}
	return r.GetArtifact().Revision
}
