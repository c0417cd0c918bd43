// SPDX-License-Identifier: Apache-2.0

// Package job measures HealthChecks of the class "job": it runs a Job for a promotion, and
// says how it ended.
//
// The Job comes from a CronJob that somebody has written who may create Jobs. So the right
// to create HealthChecks is not enough to choose an image, a command or a ServiceAccount.
//
//	run.go       what a Job is for, and its name
//	template.go  the Job that is made from a CronJob
//	runner.go    one measurement: finds or creates the Job, and judges it
//	verdict.go   what the status of a Job means
//	kept.go      what is kept of Jobs and Pods
//	pods.go      why its Pods do not run, and what the last one said
//	tidy.go      deletes Jobs that nobody needs any more
//	failure.go   what it means if the API server refuses something
package job

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

const (
	// longestName is how long the name of a Job may be: its Pods have it as a label.
	longestName = 63
	// hashLength is how many hexadecimal digits tell the Jobs of a HealthCheck apart.
	hashLength = 12
)

// Run is what a Job is for: one measurement after one promotion.
type Run struct {
	// Rollout and RolloutUID are of the Rollout that promotes.
	Rollout    types.NamespacedName
	RolloutUID types.UID
	// Entry is the ID of the history entry.
	Entry int64
	// Retry identifies the retry of the promotion. It is empty before the first one.
	Retry string
	// Number is how many Jobs since the promotion or its retry have failed.
	Number int

	// Version, Digest and Revision are of the release that is promoted. PreviousVersion is
	// of the release that succeeded last before it. Values that are not known are empty.
	Version, Digest, Revision, PreviousVersion string
}

// Name returns the name of the Job. The same run of the same HealthCheck always has the
// same name, so that its Job is created only once, whoever creates it.
func (r Run) Name(check *v1alpha1.HealthCheck) string {
	of := fmt.Sprintf("%s\n%s\n%d\n%s\n%d", check.UID, r.RolloutUID, r.Entry, r.Retry, r.Number)
	sum := sha256.Sum256([]byte(of))
	return prefixed(check.Name, hex.EncodeToString(sum[:])[:hashLength], longestName)
}

// prefixed returns a name that ends in a hash, and begins with as much of another name as
// there is space for. It contains no dots: the name is part of the host names of Pods.
func prefixed(name, hash string, longest int) string {
	name = strings.ReplaceAll(name, ".", "-")
	name = name[:min(len(name), longest-len(hash)-1)]
	return strings.TrimRight(name, "-") + "-" + hash
}

// environment returns the variables that each container gets.
func (r Run) environment() []corev1.EnvVar {
	variable := func(name, value string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, Value: strings.ReplaceAll(value, "$", "$$")} // Kubernetes replaces $(NAME)
	}
	return []corev1.EnvVar{
		variable("ROLLOUT", r.Rollout.Name), variable("VERSION", r.Version), variable("DIGEST", r.Digest),
		variable("REVISION", r.Revision), variable("PREVIOUS_VERSION", r.PreviousVersion),
	}
}
