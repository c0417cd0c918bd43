// SPDX-License-Identifier: Apache-2.0

// Package write is the only way to write objects that may be in a cache. The client
// decodes the API server's response into the object that it is given. Objects of a cache
// share the values behind their pointers with each other and with their readers. This
// package decodes the response into a separate object, and only reads the given one.
package write

import (
	"context"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FieldManager is the field manager of the controller. It is part of the wire contract:
// the ownership of a field continues across controllers.
const FieldManager = "rollout-controller"

// Patch patches an object and returns the response of the API server.
func Patch[T client.Object](ctx context.Context, c client.Writer, object T, patch client.Patch) (T, error) {
	answer, patch, err := prepare(object, patch)
	if err != nil {
		return object, err
	}
	return answer, c.Patch(ctx, answer, patch, client.FieldOwner(FieldManager))
}

// PatchStatus patches the status of an object and returns the response of the API server.
func PatchStatus[T client.Object](ctx context.Context, c client.StatusClient, object T, patch client.Patch) (T, error) {
	answer, patch, err := prepare(object, patch)
	if err != nil {
		return object, err
	}
	return answer, c.Status().Patch(ctx, answer, patch, client.FieldOwner(FieldManager))
}

// UpdateStatus writes the whole status of an object and returns the response of the API
// server. It is for objects for which the controller does not request the right to patch.
func UpdateStatus[T client.Object](ctx context.Context, c client.StatusClient, object T) (T, error) {
	answer := object.DeepCopyObject().(T)
	return answer, c.Status().Update(ctx, answer, client.FieldOwner(FieldManager))
}

// prepare returns an empty object for the response, and the patch to send.
func prepare[T client.Object](object T, patch client.Patch) (T, client.Patch, error) {
	answer := reflect.New(reflect.TypeOf(object).Elem()).Interface().(T)
	answer.GetObjectKind().SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
	answer.SetNamespace(object.GetNamespace())
	answer.SetName(object.GetName())
	body, err := patch.Data(object)
	return answer, client.RawPatch(patch.Type(), body), err
}
