// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/admission"
	cases "github.com/fluxrollouts/rollout-controller/test/admission"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const controller = "system:serviceaccount:kuberik-system:controller"

// listed is a client that lists coordinations or returns an error.
type listed struct {
	client.Reader
	coordinations []v1.DeploymentCoordination
	err           error
}

func (l listed) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var wanted client.ListOptions
	wanted.ApplyOptions(options)
	for _, c := range l.coordinations {
		if c.Namespace == wanted.Namespace {
			into := list.(*v1.DeploymentCoordinationList)
			into.Items = append(into.Items, c)
		}
	}
	return l.err
}

func answer(t *testing.T, reader client.Reader, request ctrladmission.Request) ctrladmission.Response {
	t.Helper()
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(appsv1.AddToScheme(scheme)).To(Succeed())
	h := &Handler{Coordinations: reader, Rule: admission.Rule{Controller: controller}, Decoder: ctrladmission.NewDecoder(scheme)}
	return h.Handle(t.Context(), request)
}

// asking returns a request as the API server sends it.
func asking(t *testing.T, c cases.Case) ctrladmission.Request {
	t.Helper()
	request := ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Kind:      metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Namespace: "shop", Name: cases.Name, Operation: admissionv1.Create,
		UserInfo: authenticationv1.UserInfo{Username: "jane"},
		Object:   runtime.RawExtension{Raw: encoded(t, c.New)},
	}}
	if c.Old != nil {
		request.Operation = admissionv1.Update
		request.OldObject.Raw = encoded(t, c.Old)
		stored := c.New.DeepCopy()
		stored.UID = cases.StoredUID
		request.Object.Raw = encoded(t, stored)
	}
	if c.ByController {
		request.UserInfo.Username = controller
	}
	return request
}

func encoded(t *testing.T, o any) []byte {
	t.Helper()
	content, err := json.Marshal(o)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return content
}

func coordinationsOf(c cases.Case) []v1.DeploymentCoordination {
	var all []v1.DeploymentCoordination
	for _, coordination := range c.Coordinations {
		placed := *coordination.DeepCopy()
		if placed.Namespace == "" {
			placed.Namespace = "shop"
		}
		all = append(all, placed)
	}
	return all
}

func TestAnswerHoldsAndChangesNothingElse(t *testing.T) {
	for name, c := range cases.Cases("shop") {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			response := answer(t, listed{coordinations: coordinationsOf(c)}, asking(t, c))
			g.Expect(response.Allowed).To(BeTrue())
			changed := map[string]any{}
			for _, operation := range response.Patches {
				g.Expect(operation.Operation).To(Equal("add"))
				changed[operation.Path] = operation.Value
			}
			if len(c.PausedBy) == 0 {
				g.Expect(changed).To(BeEmpty())
				return
			}
			g.Expect(changed).To(HaveKeyWithValue("/spec/paused", true))
			g.Expect(c.PausedBy).To(ContainElement(changed["/metadata/annotations/apps.containerinfra.nl~1held-by"]))
			if len(c.New.Annotations) > 0 {
				g.Expect(changed).NotTo(HaveKey("/metadata/annotations"), "others would be lost")
			}
		})
	}
}

func TestRequestsThatCannotBeJudgedAreStoredAsAsked(t *testing.T) {
	waiting := cases.Cases("shop")["waiting, when it is created: paused"]
	for name, reader := range map[string]client.Reader{
		"there is no client":              nil,
		"the coordinations are not known": listed{coordinations: coordinationsOf(waiting), err: errors.New("not now")},
	} {
		t.Run(name, func(t *testing.T) {
			response := answer(t, reader, asking(t, waiting))
			NewWithT(t).Expect(response.Allowed).To(BeTrue())
			NewWithT(t).Expect(response.Patches).To(BeEmpty())
		})
	}
}

func TestRequestWithoutADeploymentIsAnError(t *testing.T) {
	waiting := cases.Cases("shop")["waiting, when it is created: paused"]
	for name, change := range map[string]func(*ctrladmission.Request){
		"another kind":    func(r *ctrladmission.Request) { r.Kind.Kind = "StatefulSet" },
		"another group":   func(r *ctrladmission.Request) { r.Kind.Group = "example.com" },
		"another version": func(r *ctrladmission.Request) { r.Kind.Version = "v1beta1" },
	} {
		t.Run(name, func(t *testing.T) {
			request := asking(t, waiting)
			change(&request)
			response := answer(t, listed{coordinations: coordinationsOf(waiting)}, request)
			NewWithT(t).Expect(response.Allowed).To(BeFalse())
			NewWithT(t).Expect(response.Result.Code).To(Equal(int32(400)))
		})
	}
}

// The API server may be able to store a Deployment that this process cannot read.
func TestDeploymentThatCannotBeReadIsStoredAsAsked(t *testing.T) {
	waiting := cases.Cases("shop")["waiting, when it is created: paused"]
	for name, change := range map[string]func(*ctrladmission.Request){
		"no object":      func(r *ctrladmission.Request) { r.Object.Raw = nil },
		"no JSON":        func(r *ctrladmission.Request) { r.Object.Raw = []byte("{") },
		"no JSON stored": func(r *ctrladmission.Request) { r.OldObject.Raw = []byte("{") },
		"another type":   func(r *ctrladmission.Request) { r.Object.Raw = []byte(`{"spec":{"replicas":"many"}}`) },
	} {
		t.Run(name, func(t *testing.T) {
			request := asking(t, waiting)
			change(&request)
			response := answer(t, listed{coordinations: coordinationsOf(waiting)}, request)
			NewWithT(t).Expect(response.Allowed).To(BeTrue())
			NewWithT(t).Expect(response.Patches).To(BeEmpty())
		})
	}
}
