// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	appsv1 "k8s.io/api/apps/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/admission"
)

// Handler answers the API server by the rule. It rejects only objects that are not
// Deployments. If it cannot read the Deployment or the coordinations, the Deployment is
// stored unchanged, and the controller pauses it later.
type Handler struct {
	// Coordinations reads DeploymentCoordinations. Without it, nothing is paused.
	Coordinations client.Reader
	// Rule decides.
	Rule admission.Rule
	// Decoder reads Deployments.
	Decoder ctrladmission.Decoder
}

// Handle answers one request.
func (h *Handler) Handle(ctx context.Context, request ctrladmission.Request) ctrladmission.Response {
	if err := isDeployment(request); err != nil {
		return ctrladmission.Errored(http.StatusBadRequest, err)
	}
	asked, err := h.read(request)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "a Deployment was not paused, as it cannot be read",
			"namespace", request.Namespace, "name", request.Name)
		return ctrladmission.Allowed("")
	}
	if h.Coordinations == nil {
		return ctrladmission.Allowed("")
	}
	list := &v1.DeploymentCoordinationList{}
	if err := h.Coordinations.List(ctx, list, client.InNamespace(request.Namespace)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "a Deployment was not paused, as its coordinations cannot be listed",
			"namespace", request.Namespace, "name", request.Name)
		return ctrladmission.Allowed("")
	}
	by, paused := h.Rule.PausedBy(asked, list.Items)
	if !paused {
		return ctrladmission.Allowed("")
	}
	return ctrladmission.Patched("", patch(asked.New, by)...)
}

// isDeployment returns an error if the request is about another kind.
func isDeployment(request ctrladmission.Request) error {
	kind := appsv1.SchemeGroupVersion.WithKind("Deployment")
	if got := request.Kind; got.Group != kind.Group || got.Version != kind.Version || got.Kind != kind.Kind {
		return fmt.Errorf("expected a Deployment of apps/v1, and got %s", got.String())
	}
	return nil
}

// read converts a request into the input of the rule. It has an old Deployment if there
// is one.
func (h *Handler) read(request ctrladmission.Request) (admission.Request, error) {
	asked := admission.Request{Username: request.UserInfo.Username, New: &appsv1.Deployment{}}
	if err := h.Decoder.Decode(request, asked.New); err != nil {
		return asked, fmt.Errorf("read the Deployment: %w", err)
	}
	asked.New.Namespace = request.Namespace
	if len(request.OldObject.Raw) > 0 {
		asked.Old = &appsv1.Deployment{}
		if err := h.Decoder.DecodeRaw(request.OldObject, asked.Old); err != nil {
			return asked, fmt.Errorf("read the Deployment that is stored: %w", err)
		}
	}
	return asked, nil
}

// patch returns a patch that only pauses a Deployment and writes which coordination did
// so.
func patch(d *appsv1.Deployment, by string) []jsonpatch.Operation {
	var operations []jsonpatch.Operation
	if len(d.Annotations) == 0 {
		operations = append(operations, jsonpatch.NewOperation("add", "/metadata/annotations", map[string]string{}))
	}
	key := strings.NewReplacer("~", "~0", "/", "~1").Replace(v1.HeldByAnnotation)
	return append(operations,
		jsonpatch.NewOperation("add", "/metadata/annotations/"+key, by),
		jsonpatch.NewOperation("add", "/spec/paused", true),
	)
}
