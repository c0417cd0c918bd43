// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

var (
	quarantinePath = []string{"spec", "quarantine"}
	untilPath      = []string{"spec", "until"}
	imagePath      = []string{"spec", "image"}
)

// checkReporting finds Rollouts that are meant to report failures to quarantines, and never
// do: no release can fail by a cause that says something about the release.
func checkReporting(r *report) {
	for _, o := range r.byKind[rolloutKind] {
		if !r.reports(o) {
			continue
		}
		switch where := (at{o, quarantinePath}); r.answersAnything(o, &v1alpha1.RolloutRollback{}) {
		case maybe:
			r.skip(where, "whether Flux waits for the health of a release depends on objects that are not known")
		case no:
			r.find(where, fmt.Sprintf("spec.quarantine never reports a failure: no release can fail by %s, %s", v1alpha1.CauseHealthCheckFailed, v1alpha1.CauseTargetUnhealthy),
				"set spec.targetHealth: Required, or select a HealthCheck; or set spec.quarantine.report: None")
		case yes:
		}
	}
}

// reports returns whether a Rollout is meant to report its failures, as far as that is
// known.
func (r *report) reports(o *object) bool {
	switch {
	case !o.has(quarantinePath...):
		return false
	case o.isUnknown(quarantinePath...) || o.isUnknown("spec", "deployTimeout"):
		r.skip(at{o, quarantinePath}, "it has variables whose values are not known")
		return false
	}
	return o.text("spec", "quarantine", "report") != string(v1alpha1.ReportNothing)
}

// checkUselessQuarantines finds quarantines that hold no release. Those that are lifted are
// meant to hold none.
func checkUselessQuarantines(r *report) {
	for _, kind := range []schema.GroupKind{quarantineKind, clusterQuarantineKind} {
		for _, o := range r.byKind[kind] {
			if !o.isTrue("spec", "lifted") {
				r.checkQuarantineIsOver(o)
				r.checkQuarantinedImage(o)
			}
		}
	}
}

func (r *report) checkQuarantineIsOver(o *object) {
	until, err := time.Parse(time.RFC3339, o.text(untilPath...))
	if err == nil && !o.isUnknown(untilPath...) && !r.now.Before(until) {
		r.find(at{o, untilPath}, fmt.Sprintf("%s is over since %s: it holds nothing", o, until.UTC().Format(time.RFC3339)), "remove it, or correct spec.until")
	}
}

// checkQuarantinedImage finds images that no ImageRepository can have. With a digest, the
// image does not matter.
func (r *report) checkQuarantinedImage(o *object) {
	image := o.text(imagePath...)
	if o.has("spec", "digest") || o.isUnknown(imagePath...) || isImage(image) {
		return
	}
	r.find(at{o, imagePath}, fmt.Sprintf("%s holds nothing: %q is not an image without a tag", o, image),
		"write it as in spec.image of the ImageRepository, such as registry.example.com/shop, and the tag in spec.tags")
}

// isImage reports whether a text may be the name of an image: it has no scheme, tag or
// digest.
func isImage(text string) bool {
	last := text[strings.LastIndex(text, "/")+1:]
	return !strings.Contains(text, "://") && !strings.ContainsAny(last, ":@")
}
