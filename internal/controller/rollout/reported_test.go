// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// notWritten returns the messages of the events about quarantines that are not written.
func (s *testEnv) notWritten() []string {
	var all []string
	for _, e := range s.Events.Take() {
		if e.Reason == v1alpha1.QuarantineNotWrittenReason {
			s.Expect([]string{e.On, e.Type}).To(Equal([]string{"shop", corev1.EventTypeWarning}))
			all = append(all, e.Message)
		}
	}
	return all
}

func TestQuarantineThatCannotBeWrittenKeepsNothingBack(t *testing.T) {
	t.Parallel()
	resource, kind := schema.GroupResource{Resource: "releasequarantines"}, schema.GroupKind{Kind: v1alpha1.ReleaseQuarantineKind}
	for name, tt := range map[string]struct {
		write string
		err   error
		said  string // empty if it goes away by itself
	}{
		"create is forbidden": {
			"create ReleaseQuarantine", apierrors.NewForbidden(resource, quarantineOf("1.1.0"), nil),
			"forbidden",
		},
		"admission refuses it": {
			"create ReleaseQuarantine", apierrors.NewInvalid(kind, quarantineOf("1.1.0"), nil), "is invalid",
		},
		"the kind is gone": {
			"create ReleaseQuarantine", apierrors.NewNotFound(resource, ""), "not found",
		},
		"its status is forbidden": {
			"patch ReleaseQuarantine/status", apierrors.NewForbidden(resource, quarantineOf("1.1.0"), nil), "write its status: ",
		},
		"the API server does not answer": {
			"patch ReleaseQuarantine/status", apierrors.NewTimeoutError("injected", 1), "",
		},
		"others are always faster": {
			"patch ReleaseQuarantine/status", apierrors.NewConflict(resource, quarantineOf("1.1.0"), nil), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := openReporting(t)
			refuse := true
			s.Wire.Fail = func(_ int, write string, _ client.Object) fixture.Fault {
				if refuse && strings.HasPrefix(write, tt.write) {
					return fixture.Fault{Err: tt.err}
				}
				return fixture.Fault{}
			}
			s.failsNow()
			s.rest("shop")
			s.Expect(s.carried("shop")["tag"]).To(Equal("1.0.0"), "it goes back all the same")
			s.Expect(s.rollout("shop").Status.History[1].Quarantine).To(BeEmpty())
			tries := len(s.writesTo(tt.write))
			s.rest("shop")
			s.Expect(s.writesTo(tt.write)).To(HaveLen(tries), "not with each pass")
			s.Expect(s.reconcile("shop").RequeueAfter).To(Equal(firstRetry))
			s.Pass(firstRetry)
			s.Expect(s.reconcile("shop").RequeueAfter).To(Equal(2 * firstRetry))
			s.Expect(s.writesTo(tt.write)).To(HaveLen(2 * tries))
			if said := s.notWritten(); tt.said != "" {
				s.Expect(said).To(ConsistOf(And(
					HavePrefix("the failure of 1.1.0 could not be reported to ReleaseQuarantine "+quarantineOf("1.1.0")+": "), ContainSubstring(tt.said))))
			} else {
				s.Expect(said).To(BeEmpty())
			}

			refuse = false
			s.Pass(2 * firstRetry)
			s.rest("shop")
			s.Expect(s.known()).To(Equal("Held #2"))
			s.Expect(s.rollout("shop").Status.History[1].Quarantine).To(Equal(quarantineOf("1.1.0")))
			s.isBack()
			s.Expect(s.notWritten()).To(BeEmpty())
			s.Expect(s.reconciler.memory.of(s.Key("shop")).reported.isSettled()).To(BeTrue(), "nothing is remembered for ever")
		})
	}
}

func TestQuarantineOfOtherContentIsNotWritten(t *testing.T) {
	s := openReporting(t)
	foreign := &v1alpha1.ReleaseQuarantine{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: quarantineOf("1.1.0")},
		Spec:       v1alpha1.ReleaseQuarantineSpec{Digest: digestOf("another")},
	}
	s.Add(foreign)
	live := &askedLive{Reader: s.WithWatch}
	s.reconciler.APIReader = live
	asked := func() (n int) {
		for _, read := range live.asked {
			if strings.HasSuffix(read, " "+foreign.Name) {
				n++
			}
		}
		return n
	}
	s.failsNow()
	for range 10 {
		s.reconcile("shop")
	}
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.0.0"))
	s.Expect(asked()).To(Equal(1), "it does not loop")
	s.Expect(s.writesTo("ReleaseQuarantine")).To(BeEmpty())
	s.Expect(s.badQuarantine().Status).To(Equal(v1alpha1.ReleaseQuarantineStatus{}))
	s.Expect(s.notWritten()).To(Equal([]string{"the failure of 1.1.0 could not be reported to ReleaseQuarantine " + foreign.Name +
		": it is about another digest: delete it, and give the quarantine of that digest another name"}))

	s.Pass(firstRetry)
	s.rest("shop")
	s.Expect(asked()).To(Equal(2))
	s.Expect(s.notWritten()).To(BeEmpty(), "it is said once")
	s.deleteQuarantine()
	s.Pass(2 * firstRetry)
	s.rest("shop")
	s.Expect(s.known()).To(Equal("Held #2"))
}

func TestReportIsTriedLaterEachTimeButNeverLaterThanFiveMinutes(t *testing.T) {
	g, f := NewWithT(t), &reportedFailure{}
	var waits []time.Duration
	for range 12 {
		f.failed("no", fixture.Noon)
		waits = append(waits, f.next(fixture.Noon).Sub(fixture.Noon))
	}
	s := time.Second
	g.Expect(waits).To(Equal([]time.Duration{5 * s, 10 * s, 20 * s, 40 * s, 80 * s, 160 * s, 300 * s, 300 * s, 300 * s, 300 * s, 300 * s, 300 * s}))
	g.Expect(f.next(fixture.Noon.Add(5*time.Minute))).To(BeZero(), "it may be tried now")
	f.succeeded()
	g.Expect(f.next(fixture.Noon)).To(BeZero())
	g.Expect(f.failed("no", fixture.Noon)).To(BeTrue(), "it is said again")
}

// TestFailureIsNotAddedToAQuarantineThatAUserDecides: it holds the release anyway, or is not
// to hold it.
func TestFailureIsNotAddedToAQuarantineThatAUserDecides(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*v1alpha1.ReleaseQuarantine){
		"a user has created it": func(*v1alpha1.ReleaseQuarantine) {},
		"a user has lifted it": func(q *v1alpha1.ReleaseQuarantine) {
			q.Labels, q.Spec.Lifted = quarantine.Labels(q.Name), true
		},
	} {
		for seen, late := range map[string]bool{"": false, ", and the cache does not show it": true} {
			t.Run(name+seen, func(t *testing.T) {
				s := openReporting(t)
				if late {
					s.keep(&v1alpha1.ReleaseQuarantineList{})
				}
				q := &v1alpha1.ReleaseQuarantine{
					ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: quarantineOf("1.1.0")},
					Spec:       v1alpha1.ReleaseQuarantineSpec{Digest: digestOf("1.1.0")},
				}
				edit(q)
				s.Add(q)
				s.failsNow()
				s.rest("shop")
				s.Expect(s.carried("shop")["tag"]).To(Equal("1.0.0"))
				s.Expect(s.writesTo("ReleaseQuarantine")).To(BeEmpty())
				s.Expect(s.badQuarantine().Status.Failures).To(BeEmpty())
				s.Expect(s.notWritten()).To(BeEmpty())
				s.Expect(s.rollout("shop").Status.History[1].Quarantine).To(BeEmpty())
			})
		}
	}
}
