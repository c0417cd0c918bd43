// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// immutable is the cause that the API server puts behind the whole template of a Job.
const immutable = "immutable"

// migration is a Job whose image has the version of a variable: Kubernetes does not let its
// template change.
const migration = `apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: migrate
        image: registry.example.com/migrate:${VERSION}
        env: [%s]
`

func withMigration(s *env.Env, version string) controlplane.Artifact {
	var variables []string
	for i := range 20 { // as templates have that people write
		variables = append(variables, fmt.Sprintf("{name: DATABASE_OPTION_%d, value: a value that is set for each environment}", i))
	}
	release := s.ConfigRelease(version)
	release.Files["migrate.yaml"] = fmt.Sprintf(migration, strings.Join(variables, ", "))
	return release
}

func TestCauseAtTheEndOfALongMessageIsShown(t *testing.T) {
	s := newEnv(t)
	s.CreateFlux()
	kustomization := s.Kustomization()
	s.Change(kustomization, func() {
		kustomization.Annotations = map[string]string{
			v1alpha1.SubstituteAnnotationPrefix + "VERSION" + v1alpha1.SubstituteAnnotationSuffix: s.Name,
		}
		kustomization.Spec.Wait = true
		kustomization.Spec.RetryInterval.Duration = time.Second
	})
	s.Create(s.Rollout())
	s.Publish(withMigration(s, "1.0.0"))
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)

	s.Publish(withMigration(s, "1.1.0"))
	promoted := awaitFailedTarget(s, "1.1.0", immutable).Current().Timestamp
	checkSays(t, "TargetFailed", s.AwaitEvents(s.Rollout(), v1alpha1.TargetFailedReason)...)
	s.SetDeployTimeout(time.Since(promoted.Time).Truncate(time.Second) + 2*time.Second)
	failed := s.AwaitState("1.1.0", v1alpha1.BakeFailed)
	why := *failed.Current().BakeStatusMessage
	checkSays(t, "the history", why)
	if n := utf8.RuneCountInString(why); n > 1024 || !strings.Contains(why, " … ") {
		t.Errorf("the history has %d characters: %s", n, why)
	}
	checkSays(t, "BakeTimeFailed", s.AwaitEvents(s.Rollout(), v1alpha1.BakeTimeFailedReason)...)

	alice := s.CommandLine(s.Namespace+":alice", masters)
	built, err := parts.Build(t.Context(), os.Stderr, parts.Kubectl)
	if err != nil {
		t.Fatal(err)
	}
	kubectl := alice.OnTerminal(built[parts.Kubectl], 80)
	for _, args := range [][]string{
		{"get", "rollouts.kuberik.com", s.Name}, {"rollouts", "explain", s.Name}, {"rollouts", "status", s.Name}, {"rollouts", "history", s.Name},
	} {
		checkScreen(t, strings.Join(args, " "), kubectl(args...))
	}
}

func checkSays(t *testing.T, who string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(text, immutable) {
			t.Errorf("%s does not say %q: %s", who, immutable, text)
		}
	}
}

// checkScreen checks that a text says the cause on a terminal of 24 rows and 80 columns.
func checkScreen(t *testing.T, who, text string) {
	t.Helper()
	checkSays(t, who, text)
	rows := 0
	for line := range strings.Lines(text) {
		rows += 1 + max(utf8.RuneCountInString(strings.TrimRight(line, "\r\n"))-1, 0)/80
	}
	if rows > 24 {
		t.Errorf("%s needs %d rows:\n%s", who, rows, text)
	}
}
