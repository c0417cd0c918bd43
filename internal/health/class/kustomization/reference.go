// SPDX-License-Identifier: Apache-2.0

package kustomization

import (
	"fmt"
	"strings"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
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
	kind, err := kindOf(check.GetAnnotations())
	if err != nil {
		return Subject{}, err
	}
	annotation := Subject{Kind: kind}.Annotation()
	value := check.GetAnnotations()[annotation]
	ref := types.NamespacedName{Namespace: check.GetNamespace(), Name: value}
	if namespace, name, found := strings.Cut(value, "/"); found {
		ref = types.NamespacedName{Namespace: namespace, Name: name}
	}
	if !isNamespace(ref.Namespace) || !isName(ref.Name) {
		return Subject{}, fmt.Errorf("the annotation %s is %q, which names no %s: "+
			`set it to "name" or "namespace/name"`, annotation, truncate.Text(value, longestQuote), kind)
	}
	return Subject{kind, ref}, nil
}

// kindOf returns the kind of what a HealthCheck with these annotations is about.
func kindOf(given map[string]string) (string, error) {
	k, h := given[v1alpha1.KustomizationAnnotation] != "", given[v1alpha1.HelmReleaseAnnotation] != ""
	switch {
	case k && h:
		return "", fmt.Errorf("the annotations %s and %s are both set: remove one of them",
			v1alpha1.KustomizationAnnotation, v1alpha1.HelmReleaseAnnotation)
	case k:
		return kustomizev1.KustomizationKind, nil
	case h:
		return helmv2.HelmReleaseKind, nil
	}
	return "", fmt.Errorf(`the annotation %s is missing: set it to the "name" or "namespace/name" of a Kustomization, `+
		"or set %s to that of a HelmRelease", v1alpha1.KustomizationAnnotation, v1alpha1.HelmReleaseAnnotation)
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
