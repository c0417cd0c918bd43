// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// said returns a strange text as it is shown in a message.
func said(text string) string {
	return strconv.Quote(truncate.Text(text, 80))
}

// TestStrangeTextsAreRejectedInAFewWordsAndRecover passes each text in each way in which
// a user can pass one. Nothing panics. Each text is answered where it was set, in bounds,
// with one write. Once it is fixed, the Rollout continues.
func TestStrangeTextsAreRejectedInAFewWordsAndRecover(t *testing.T) {
	t.Parallel()
	const forced, bypass = v1alpha1.ForceDeployAnnotation, v1alpha1.BypassGatesAnnotation
	for way, tt := range map[string]struct {
		say func(*testEnv, string)
		fix func(*testEnv)
		// reported is the condition that answers.
		reported string
		want     func(text string) condition
	}{
		"a pin": {
			say:      func(s *testEnv, text string) { s.pinTo(text) },
			fix:      func(s *testEnv) { s.pin("shop", nil) },
			reported: v1alpha1.StalledCondition,
			want: func(text string) condition {
				return condition{metav1.ConditionTrue, v1alpha1.InvalidWantedVersionReason,
					"spec.wantedVersion " + said(text) + " cannot be a tag in an OCI registry: correct or remove it"}
			},
		},
		"a force": {
			say:      func(s *testEnv, text string) { s.asks(forced, text) },
			fix:      func(s *testEnv) { s.asks(forced, "") },
			reported: v1alpha1.StalledCondition,
			want: func(text string) condition {
				return condition{metav1.ConditionTrue, v1alpha1.UnknownReleaseReason,
					forced + " names " + said(text) + ", which is not a known release: correct or remove it, or set spec.wantedVersion"}
			},
		},
		"a bypass": {
			say:      func(s *testEnv, text string) { s.asks(bypass, text) },
			fix:      func(s *testEnv) { s.asks(bypass, "") },
			reported: v1alpha1.RequestAcceptedCondition,
			want: func(text string) condition {
				return condition{metav1.ConditionFalse, v1alpha1.NoSuchCandidateReason,
					bypass + " names " + said(text) + ", which is not a candidate; the request takes effect once it is"}
			},
		},
		"an unblock": {
			say:      func(s *testEnv, text string) { s.asks(v1alpha1.UnblockFailedAnnotation, text) },
			fix:      func(s *testEnv) { s.asks(v1alpha1.UnblockFailedAnnotation, "") },
			reported: v1alpha1.RequestAcceptedCondition,
			want: func(text string) condition {
				return condition{metav1.ConditionFalse, v1alpha1.InvalidRequestReason,
					v1alpha1.UnblockFailedAnnotation + ` must be "true", not ` + said(text)}
			},
		},
	} {
		t.Run(way, func(t *testing.T) {
			s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
			s.deploy("shop")
			for i, text := range fixture.Strange {
				if text == "" || text == "plain" && way == "a pin" {
					continue
				}
				s.Events.Take()
				s.Wire.Forget()
				tt.say(s, text)
				for range 3 {
					s.reconcile("shop")
				}
				s.Expect(s.condition("shop", tt.reported)).To(Equal(tt.want(text)))
				s.Expect(s.Wire.Writes()).To(Equal([]string{"patch Rollout/status shop"}))
				s.Expect(s.Events.Take()).To(HaveLen(1))
				tt.fix(s)
				next := fmt.Sprintf("1.%d.0", i+1)
				s.release("shop", next)
				s.deploy("shop")
				s.Expect(s.carried("shop")).To(HaveKeyWithValue("tag", next))
			}
		})
	}
}

// asks sets an annotation as a user does; empty removes it.
func (s *testEnv) asks(key, value string) {
	s.Change(&v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, func(o client.Object) {
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		if annotations[key] = value; value == "" {
			delete(annotations, key)
		}
		o.SetAnnotations(annotations)
	})
}

// TestStrangeTextsInAHistoryAreKeptShort: texts of users about a promotion are stored up
// to a limit, and a token is handled once.
func TestStrangeTextsInAHistoryAreKeptShort(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	for i, text := range fixture.Strange {
		s.asks(v1alpha1.DeployMessageAnnotation, text)
		s.pinTo(fmt.Sprintf("2.%d.0", i))
		s.deploy("shop")
		s.asks(v1alpha1.RetryAnnotation, text)
		s.rest("shop")
		s.asks(v1alpha1.ReconcileRequestAnnotation, text)
		s.rest("shop")
		entry, status := s.rollout("shop").Status.History[0], s.rollout("shop").Status
		checkSize(s, &status)
		s.Expect(entry.Version.Tag).To(Equal(fmt.Sprintf("2.%d.0", i)))
		s.Expect(len(*entry.Message)).To(BeNumerically("<=", 1536))
		if trimmed := strings.TrimSpace(text); trimmed != "" && len(text) < 100 {
			s.Expect(*entry.Message).To(Equal(trimmed))
			s.Expect(status.LastHandledReconcileAt).To(Equal(text))
		}
		s.Expect(len(status.LastHandledReconcileAt)).To(BeNumerically("<=", 1536))
		s.Wire.Forget()
		s.reconcile("shop")
		s.Expect(s.Wire.Writes()).To(BeEmpty())
		s.asks(v1alpha1.ReconcileRequestAnnotation, "")
	}
}

func checkSize(g Gomega, status *v1alpha1.RolloutStatus) {
	wire, err := json.Marshal(status)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(wire)).To(BeNumerically("<=", fixture.StatusLimit))
}
