// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"fmt"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// tale is a record that somebody made up: each step is a state of an object.
type tale struct {
	seen []Sight
	// shop is the Rollout as it is specified.
	shop *fixture.RolloutBuilder
	// tag and variable are what the targets carry.
	tag, variable string
	generation    int64
}

// newTale has a Rollout, the OCIRepository shop and the Kustomization shop, which
// consumes it and has a variable, and a HealthCheck.
func newTale() *tale {
	t := &tale{shop: fixture.MakeRollout("shop").BakeTime(time.Minute).SelectAllChecks(), tag: "0.9.0", variable: "0.9.0", generation: 1}
	return t.history().pulled("0.9.0").applied("0.9.0").says(v1alpha1.HealthStatusHealthy)
}

// state adds a state of an object.
func (t *tale) state(object client.Object) *tale {
	object.SetUID(types.UID(fmt.Sprintf("%T", object)))
	t.seen = append(t.seen, Sight{At: uint64(len(t.seen) + 1), Object: object})
	return t
}

// after a gap came the state that was added last.
func (t *tale) afterGap() *tale {
	t.seen[len(t.seen)-1].Gap = true
	return t
}

// gone makes the state that was added last the last one of its object.
func (t *tale) gone() *tale {
	t.seen[len(t.seen)-1].Gone = true
	return t
}

func (t *tale) history(entries ...*fixture.EntryBuilder) *tale {
	return t.state(t.shop.History(entries...).Obj())
}

// chosen is the Rollout when a person has pinned a version.
func (t *tale) chosen(tag string, entries ...*fixture.EntryBuilder) *tale {
	rollout := t.shop.History(entries...).Obj()
	rollout.Spec.WantedVersion = &tag
	return t.state(rollout)
}

// repository is a state of the OCIRepository.
func (t *tale) repository(pulled string) *fixture.RepositoryBuilder {
	b := fixture.MakeRepository("shop").DrivenBy("shop").Tag(t.tag).Generation(t.generation)
	if pulled != "" {
		b = b.Pulled(fixture.Revision(pulled)).Ready()
	}
	return b
}

// pulled is the OCIRepository when Flux has pulled what it asks for, or something
// older.
func (t *tale) pulled(tag string) *tale {
	return t.state(ownedBy(t.repository(tag).Obj(), manager, "f:ref", "f:tag"))
}

// tagged is the OCIRepository when somebody has written another tag.
func (t *tale) tagged(writer, tag string) *tale {
	t.tag, t.generation = tag, t.generation+1
	return t.state(ownedBy(t.repository("").Obj(), writer, "f:ref", "f:tag"))
}

func (t *tale) kustomization(applied string) *kustomizev1.Kustomization {
	b := fixture.MakeKustomization("shop").DrivenBy("shop", "VERSION").Substitute("VERSION", t.variable).Generation(t.generation)
	if applied != "" {
		b = b.Applied(fixture.Revision(applied)).Ready()
	}
	return b.Obj()
}

// applied is the Kustomization when Flux has applied a version of its source.
func (t *tale) applied(tag string) *tale {
	return t.state(ownedBy(t.kustomization(tag), manager, "f:postBuild", "f:substitute", "f:VERSION"))
}

// substituted is the Kustomization when somebody has written the variable.
func (t *tale) substituted(writer, version string) *tale {
	t.variable = version
	return t.state(ownedBy(t.kustomization(""), writer, "f:postBuild", "f:substitute", "f:VERSION"))
}

// written is what the controller does for a promotion.
func (t *tale) written(version string) *tale {
	return t.tagged(manager, version).substituted(manager, version)
}

// deployed is what Flux does then.
func (t *tale) deployed(version string) *tale { return t.pulled(version).applied(version) }

// says is the HealthCheck.
func (t *tale) says(status v1alpha1.HealthStatus) *tale {
	return t.state(fixture.MakeHealthCheck("web").State(status).Obj())
}

// proven is what the HealthCheck says when it is asked anew.
func (t *tale) proven() *tale {
	return t.says(v1alpha1.HealthStatusPending).says(v1alpha1.HealthStatusHealthy)
}

// ownedBy makes somebody the one who wrote a field of the spec last.
func ownedBy[T client.Object](object T, writer string, path ...string) T {
	fields := `{"f:spec":{"` + strings.Join(path, `":{"`) + `":{}` + strings.Repeat("}", len(path)) + "}"
	object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: writer, FieldsV1: metav1.NewFieldsV1(fields)}})
	return object
}

type entryBuilder = fixture.EntryBuilder

// Entries of the history.
var (
	noon = fixture.Noon
	one  = func() *fixture.EntryBuilder {
		return fixture.MakeEntry("1.0.0").By(v1alpha1.TriggeredBySystem, "c").ID(1)
	}
	two = func() *fixture.EntryBuilder {
		return fixture.MakeEntry("1.1.0").By(v1alpha1.TriggeredBySystem, "c").ID(2)
	}
	done = func(e *fixture.EntryBuilder) *fixture.EntryBuilder {
		return e.Succeeded().BakeStart(noon).BakeEnd(noon.Add(time.Minute))
	}
)

// firstPromotion is one that keeps every promise.
func firstPromotion() *tale {
	return newTale().history(one().Deploying()).written("1.0.0").deployed("1.0.0").proven().
		history(one().Baking(noon)).history(done(one()))
}

// content gives the entry's tag a digest.
func content(e *fixture.EntryBuilder, digest string) *fixture.EntryBuilder {
	return e.Version(fixture.MakeRelease(e.Obj().Version.Tag).Digest("sha256:" + digest).Obj())
}
