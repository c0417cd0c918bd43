// SPDX-License-Identifier: Apache-2.0

// Package unreadable keeps one object that cannot be decoded from hiding all others of its
// kind.
//
// An API server stores whatever the schema of a custom resource lets in, and that is more
// than Go decodes: to "format: date-time" of a CRD 2026-03-02t12:00:00z is a time, to
// metav1.Time it is an error. One such value in one object, and a list of that kind fails,
// its cache never fills, and a controller stands still for everybody.
//
// Here each object is decoded by itself. Of one that cannot be, what can be is kept, with a
// mark on it, and whoever asks for it is told that it cannot be read.
package unreadable

import (
	"errors"
	"fmt"
	"maps"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Annotation marks what is left of an object that could not be decoded, and says why. It is
// never written to the API server. Whoever writes it there makes an object of their own
// unreadable, and nothing else.
const Annotation = "unreadable.rollout.kuberik.com/cause"

// Mark has everybody who asks for an object of a cache told that it cannot be read, and why.
func Mark(object client.Object, cause string) {
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[Annotation] = truncate.Text(cause, longestCause)
	object.SetAnnotations(annotations)
}

// Error says that an object cannot be read. It stays so until somebody corrects the object,
// which is an event of a watch: trying again does not help.
type Error struct {
	// Object names the kind, and the object by namespace and name.
	Object string
	// Cause is what the decoder said, in a few words.
	Cause string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s cannot be read: %s: correct that field", e.Object, e.Cause)
}

// Because returns what an error says of an object that cannot be read; nil if it is another
// one.
func Because(err error) *Error {
	var unreadable *Error
	if errors.As(err, &unreadable) {
		return unreadable
	}
	return nil
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

// kindOf is the name of the object's type, which is that of its kind: objects of a cache
// carry no kind themselves.
func kindOf(object client.Object) string { return reflect.TypeOf(object).Elem().Name() }
