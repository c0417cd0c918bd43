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
	"github.com/fluxrollouts/rollout-controller/test/faults/record"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// recording is an invented record: each step is a state of an object.
type recording struct {
	seen []record.Sight
	// shop builds the Rollout.
	shop *fixture.RolloutBuilder
	// tag and variable are the versions in the targets.
	tag, variable string
	generation    int64
}

// newRecording returns a recording with a Rollout, the OCIRepository shop, the Kustomization shop,
// which consumes it and has a variable, and a HealthCheck.
func newRecording() *recording {
	t := &recording{shop: fixture.MakeRollout("shop").BakeTime(time.Minute).SelectAllChecks(), tag: "0.9.0", variable: "0.9.0", generation: 1}
	return t.history().pulled("0.9.0").applied("0.9.0").says(v1alpha1.HealthStatusHealthy)
}

// state adds a state of an object.
func (t *recording) state(object client.Object) *recording {
	object.SetUID(types.UID(fmt.Sprintf("%T", object)))
	t.seen = append(t.seen, record.Sight{At: uint64(len(t.seen) + 1), Object: object})
	return t
}

// afterGap marks the last added state as seen after a gap.
func (t *recording) afterGap() *recording {
	t.seen[len(t.seen)-1].Gap = true
	return t
}

// gone makes the last added state the last one of its object.
func (t *recording) gone() *recording {
	t.seen[len(t.seen)-1].Gone = true
	return t
}

func (t *recording) history(entries ...*fixture.EntryBuilder) *recording {
	return t.state(t.shop.History(entries...).Obj())
}

// chosen adds the Rollout after a user has pinned a version.
func (t *recording) chosen(tag string, entries ...*fixture.EntryBuilder) *recording {
	rollout := t.shop.History(entries...).Obj()
	rollout.Spec.WantedVersion = &tag
	return t.state(rollout)
}

// repository returns a state of the OCIRepository.
func (t *recording) repository(pulled string) *fixture.RepositoryBuilder {
	b := fixture.MakeRepository("shop").DrivenBy("shop").Tag(t.tag).Generation(t.generation)
	if pulled != "" {
		b = b.Pulled(fixture.Revision(pulled)).Ready()
	}
	return b
}

// pulled adds the OCIRepository after Flux has pulled its tag, or something older.
func (t *recording) pulled(tag string) *recording {
	return t.state(ownedBy(t.repository(tag).Obj(), manager, "f:ref", "f:tag"))
}

// tagged adds the OCIRepository after a writer has set another tag.
func (t *recording) tagged(writer, tag string) *recording {
	t.tag, t.generation = tag, t.generation+1
	return t.state(ownedBy(t.repository("").Obj(), writer, "f:ref", "f:tag"))
}

func (t *recording) kustomization(applied string) *kustomizev1.Kustomization {
	b := fixture.MakeKustomization("shop").DrivenBy("shop", "VERSION").Substitute("VERSION", t.variable).Generation(t.generation)
	if applied != "" {
		b = b.Applied(fixture.Revision(applied)).Ready()
	}
	return b.Obj()
}

// applied adds the Kustomization after Flux has applied a version of its source.
func (t *recording) applied(tag string) *recording {
	return t.state(ownedBy(t.kustomization(tag), manager, "f:postBuild", "f:substitute", "f:VERSION"))
}

// substituted adds the Kustomization after a writer has set the variable.
func (t *recording) substituted(writer, version string) *recording {
	t.variable = version
	return t.state(ownedBy(t.kustomization(""), writer, "f:postBuild", "f:substitute", "f:VERSION"))
}

// written adds the controller's writes for a promotion.
func (t *recording) written(version string) *recording {
	return t.tagged(manager, version).substituted(manager, version)
}

// deployed adds the states that Flux writes after that.
func (t *recording) deployed(version string) *recording { return t.pulled(version).applied(version) }

// says adds the HealthCheck with a status.
func (t *recording) says(status v1alpha1.HealthStatus) *recording {
	return t.state(fixture.MakeHealthCheck("web").State(status).Obj())
}

// proven adds the states of the HealthCheck after a reset: Pending, then Healthy.
func (t *recording) proven() *recording {
	return t.says(v1alpha1.HealthStatusPending).says(v1alpha1.HealthStatusHealthy)
}

// ownedBy makes a writer the one that last wrote a field of the spec.
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

// firstPromotion returns a recording that keeps every promise.
func firstPromotion() *recording {
	return newRecording().history(one().Deploying()).written("1.0.0").deployed("1.0.0").proven().
		history(one().Baking(noon)).history(done(one()))
}

// content sets the digest of the entry's tag.
func content(e *fixture.EntryBuilder, digest string) *fixture.EntryBuilder {
	return e.Version(fixture.MakeRelease(e.Obj().Version.Tag).Digest("sha256:" + digest).Obj())
}
