// SPDX-License-Identifier: Apache-2.0

package kustomization

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// longestQuote is how many characters of an invalid reference are quoted.
const longestQuote = 80

const (
	defaultInterval = 30 * time.Second
	minimumInterval = 5 * time.Second
)

// Reference returns what a HealthCheck is about. The error is a sentence for the author of
// the annotation.
func Reference(check *v1alpha1.HealthCheck) (Subject, error) {
	value := check.GetAnnotations()[v1alpha1.KustomizationAnnotation]
	if value == "" {
		return Subject{}, fmt.Errorf("the annotation %s is missing: "+
			`set it to the "name" or "namespace/name" of a Kustomization`, v1alpha1.KustomizationAnnotation)
	}
	ref := types.NamespacedName{Namespace: check.GetNamespace(), Name: value}
	if namespace, name, found := strings.Cut(value, "/"); found {
		ref = types.NamespacedName{Namespace: namespace, Name: name}
	}
	if !isNamespace(ref.Namespace) || !isName(ref.Name) {
		return Subject{}, fmt.Errorf("the annotation %s is %q, which names no Kustomization: "+
			`set it to "name" or "namespace/name"`, v1alpha1.KustomizationAnnotation, truncate.Text(value, longestQuote))
	}
	return Of(ref), nil
}

func isNamespace(s string) bool { return len(validation.ValidateNamespaceName(s, false)) == 0 }

func isName(s string) bool { return len(validation.NameIsDNSSubdomain(s, false)) == 0 }

// Interval returns how often to look at objects that cannot be watched.
func Interval(check *v1alpha1.HealthCheck) time.Duration {
	interval, err := time.ParseDuration(check.GetAnnotations()[v1alpha1.RequeueIntervalAnnotation])
	if err != nil {
		return defaultInterval
	}
	return max(interval, minimumInterval)
}
