// SPDX-License-Identifier: Apache-2.0

// Package write is the one way to change objects that may be those of a cache. The
// client decodes the API server's answer into the object that it is given, and objects
// of a cache share what they point to with each other, and with whoever reads them.
// Here the answer goes into an object of its own, and what was given is only read.
package write

import (
	"context"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FieldManager is the name under which the controller writes. It is part of
// the wire contract: ownership of a field continues across controllers.
const FieldManager = "rollout-controller"

// Patch patches an object and returns what the API server has answered.
func Patch[T client.Object](ctx context.Context, c client.Writer, object T, patch client.Patch) (T, error) {
	answer, patch, err := prepare(object, patch)
	if err != nil {
		return object, err
	}
	return answer, c.Patch(ctx, answer, patch, client.FieldOwner(FieldManager))
}

// PatchStatus patches the status of an object and returns what the API server has
// answered.
func PatchStatus[T client.Object](ctx context.Context, c client.StatusClient, object T, patch client.Patch) (T, error) {
	answer, patch, err := prepare(object, patch)
	if err != nil {
		return object, err
	}
	return answer, c.Status().Patch(ctx, answer, patch, client.FieldOwner(FieldManager))
}

// UpdateStatus sends the whole status of an object, where the right to patch it is not
// asked for, and returns what the API server has answered.
func UpdateStatus[T client.Object](ctx context.Context, c client.StatusClient, object T) (T, error) {
	answer := object.DeepCopyObject().(T)
	return answer, c.Status().Update(ctx, answer, client.FieldOwner(FieldManager))
}

// prepare returns an empty object for the answer, and the patch as it is sent.
func prepare[T client.Object](object T, patch client.Patch) (T, client.Patch, error) {
	answer := reflect.New(reflect.TypeOf(object).Elem()).Interface().(T)
	answer.GetObjectKind().SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
	answer.SetNamespace(object.GetNamespace())
	answer.SetName(object.GetName())
	body, err := patch.Data(object)
	return answer, client.RawPatch(patch.Type(), body), err
}
