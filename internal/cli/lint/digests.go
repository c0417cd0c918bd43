// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strings"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// checkDigestAnnotations finds OCIRepositories whose digest the controller does not write: it writes tag
// and digest together.
func checkDigestAnnotations(r *report) {
	for _, o := range r.byKind[repositoryKind] {
		rollout := o.annotation(v1alpha1.DigestRefAnnotation)
		if rollout != "" && o.annotation(rolloutAnnotation) != rollout {
			r.find(annotationAt(o, v1alpha1.DigestRefAnnotation),
				fmt.Sprintf("the annotation %s has no effect, because %s does not name the same Rollout", v1alpha1.DigestRefAnnotation, rolloutAnnotation),
				fmt.Sprintf("add %s: %s", rolloutAnnotation, rollout))
		}
	}
}

// isDigest reports whether the field gets the digest of a release.
func (a assignment) isDigest() bool { return strings.HasPrefix(a.key, v1alpha1.DigestAnnotationPrefix) }

// getsDigests reports whether something gets the digests of a Rollout, as far as is known here.
func (r *report) getsDigests(rollout *object) bool {
	for _, kind := range writtenKinds {
		for _, o := range r.byKind[kind] {
			for _, a := range o.assignments() {
				if a.isDigest() && a.rollout == rollout.name() && sameNamespace(o.namespace(), rollout.namespace()) == yes {
					return true
				}
			}
		}
	}
	return false
}
