// SPDX-License-Identifier: Apache-2.0

// Package unreadable prevents that one object that cannot be decoded hides all others of
// its kind.
//
// An API server stores every object that the schema of a custom resource allows, and that
// is more than Go decodes: for "format: date-time" of a CRD, 2026-03-02t12:00:00z is a
// valid time, but metav1.Time returns an error. One such value in one object is enough: a
// list of that kind fails, its cache never fills, and the controller stops for all users.
//
// This package decodes each object separately. It keeps the parts that can be decoded of
// a broken object and marks it. Reading such an object returns an error.
package unreadable

import (
	"errors"
	"fmt"
	"maps"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Annotation marks the parts of an object that could not be decoded, and contains the
// cause. It is never written to the API server. A user who writes it there only makes
// their own object unreadable.
const Annotation = "unreadable.rollout.kuberik.com/cause"

// Mark makes every read of an object from a cache return an error with this cause, which a
// correction of the object removes.
func Mark(object client.Object, cause string) { MarkWith(object, cause, "correct that field") }

// MarkWith is [Mark] with another remedy.
func MarkWith(object client.Object, cause, remedy string) {
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[Annotation] = truncate.Text(cause, longestCause) + ": " + remedy
	object.SetAnnotations(annotations)
}

// Error means that an object cannot be read. A retry does not help. A correction of the
// object is a watch event.
type Error struct {
	// Object is the kind, and the namespace and name of the object.
	Object string
	// Cause is the message of the decoder, shortened, and what to do.
	Cause string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s cannot be read: %s", e.Object, e.Cause)
}

// Because returns the Error in err, or nil if err is not about an object that cannot be
// read.
func Because(err error) *Error {
	var unreadable *Error
	if errors.As(err, &unreadable) {
		return unreadable
	}
	return nil
}

// Why returns why something could not be read, if the API server gives a standard reason or an
// object is the cause. Other causes are only in the log. The text is the same each time.
func Why(err error) string {
	if object := Because(err); object != nil {
		return ": " + object.Error()
	}
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return ": " + string(reason)
	}
	return ""
}

// Ignore returns nil if err is about an object that cannot be read, and err otherwise. A
// retry does not help, and the correction of the object is an event.
func Ignore(err error) error {
	if Because(err) != nil {
		return nil
	}
	return err
}

// Of returns an error if the object is marked.
func Of(object client.Object) error {
	cause, marked := object.GetAnnotations()[Annotation]
	if !marked {
		return nil
	}
	return &Error{Object: nameOf(object), Cause: cause}
}

func nameOf(object client.Object) string {
	if object.GetNamespace() == "" {
		return kindOf(object) + " " + object.GetName()
	}
	return kindOf(object) + " " + client.ObjectKeyFromObject(object).String()
}

// kindOf returns the name of the object's type, which is also its kind: objects of a
// cache have no kind themselves.
func kindOf(object client.Object) string { return reflect.TypeOf(object).Elem().Name() }
