// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
)

// rollingBack returns a Rollout with more in its spec.
func rollingBack(t *testing.T, spec string) string {
	t.Helper()
	return change(t, rollout, "deployTimeout: 15m", spec)
}

func TestRollbackThatNeverActsIsFound(t *testing.T) {
	const (
		never     = "R308 Rollout shop/shop"
		unknown   = "R308? Rollout shop/shop"
		selecting = "healthCheckSelector: {selector: {matchLabels: {app: shop}}}"
	)
	healthCheck := change(t, check, "namespace: tests", "namespace: shop")
	idle := change(t, kustomization, "wait: true", "wait: false")
	helmRelease := `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: shop, namespace: shop}
spec: {chartRef: {kind: OCIRepository, name: shop}}
`
	for name, tt := range map[string]struct {
		spec     string
		others   string
		external string
		want     []string
	}{
		"a HealthCheck":                  {spec: selecting + ", rollback: {}", others: join(repository, idle, healthCheck)},
		"a Kustomization that waits":     {spec: "deployTimeout: 15m, rollback: {}", others: join(repository, kustomization)},
		"a deadline, and it is a cause":  {spec: "deployTimeout: 15m, rollback: {causes: [DeployTimeout]}", others: join(repository, idle)},
		"nothing":                        {spec: "rollback: {}", others: join(repository, idle), want: []string{never}},
		"a deadline, and it is no cause": {spec: "deployTimeout: 15m, rollback: {}", others: join(repository, idle), want: []string{never}},
		"objects of targets":             {spec: "targetHealth: Required, rollback: {}", others: join(repository, idle)},
		"a HelmRelease, which waits":     {spec: "deployTimeout: 15m, rollback: {}", others: join(repository, helmRelease)},
		"a HelmRelease that does not wait": {
			spec:   "deployTimeout: 15m, rollback: {}",
			others: join(repository, change(t, helmRelease, "spec: {", "spec: {install: {disableWait: true}, upgrade: {disableWait: true}, ")), want: []string{never},
		},
		"a HealthCheck, and it is no cause": {
			spec: selecting + ", deployTimeout: 15m, rollback: {causes: [TargetUnhealthy]}", others: join(repository, idle, healthCheck), want: []string{never},
		},
		"a Kustomization that waits without a deadline": {
			spec: "rollback: {}", others: join(repository, kustomization), want: []string{"R305 Rollout shop/shop", never},
		},
		"no Kustomization that is known": {
			spec: "deployTimeout: 15m, rollback: {}", others: repository, external: "Kustomization/shop/shop", want: []string{"R212? OCIRepository shop/shop", unknown},
		},
		"a setting that is not known": {
			spec: `rollback: {schedules: "${SCHEDULES}"}`, others: join(repository, idle), want: []string{"R101? Rollout shop/shop", unknown, "R309? Rollout shop/shop"},
		},
		"a value that is not allowed": {spec: "rollback: {causes: all}", others: join(repository, idle), want: []string{"R101 Rollout shop/shop"}},
		"no rollback":                 {spec: "suspend: false", others: join(repository, idle)},
	} {
		t.Run(name, func(t *testing.T) {
			o := lint.Options{Now: noon}
			if tt.external != "" {
				external, err := lint.ParseExternal(tt.external)
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				o.External = append(o.External, external)
			}
			files := []lint.File{{Name: "all.yaml", Content: []byte(join(policy, rollingBack(t, tt.spec), tt.others))}}
			NewWithT(t).Expect(described(lint.Files(files, o))).To(ConsistOf(tt.want))
		})
	}
}

func TestRollbackIsNotOverdueWhileFluxWaits(t *testing.T) {
	for name, tt := range map[string]struct {
		rollout, kustomization string
		want                   string // in the message; empty if there is no finding
	}{
		"longer":        {rollout: "deployTimeout: 15m, rollback: {overdueAfter: 10m}", kustomization: "wait: true, interval: 1h, timeout: 9m"},
		"shorter":       {rollout: "deployTimeout: 15m, rollback: {overdueAfter: 8m}", kustomization: "wait: true, interval: 1h, timeout: 9m", want: "after 8m0s, and Kustomization shop/shop may wait 9m0s"},
		"just as long":  {rollout: "deployTimeout: 15m, rollback: {overdueAfter: 9m}", kustomization: "wait: true, interval: 1h, timeout: 9m", want: "after 9m0s"},
		"the default":   {rollout: "deployTimeout: 15m, rollback: {}", kustomization: "wait: true, interval: 1h, timeout: 20m"},
		"no timeout":    {rollout: "deployTimeout: 15m, rollback: {overdueAfter: 9m}", kustomization: "wait: true, interval: 10m", want: "may wait 9m30s"},
		"at least 30 s": {rollout: "deployTimeout: 15m, rollback: {overdueAfter: 1m}", kustomization: "wait: true, interval: 20s"},
		"no interval":   {rollout: "deployTimeout: 15m, rollback: {overdueAfter: 1m}", kustomization: "wait: true, suspend: false"},
		"a variable":    {rollout: "deployTimeout: 15m, rollback: {overdueAfter: 1m}", kustomization: `wait: true, interval: 1h, timeout: "${TIMEOUT}"`},
		"no wait":       {rollout: "deployTimeout: 15m, rollback: {overdueAfter: 1m}", kustomization: "wait: false, interval: 1h"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			text := join(policy, rollingBack(t, tt.rollout), repository, change(t, kustomization, "wait: true", tt.kustomization))
			var found []string
			for _, finding := range lint.Files([]lint.File{{Name: "all.yaml", Content: []byte(text)}}, lint.Options{Now: noon}).Findings {
				if finding.Rule == "R309" {
					found = append(found, finding.Message)
				}
			}
			if tt.want == "" {
				g.Expect(found).To(BeEmpty())
				return
			}
			g.Expect(found).To(ConsistOf(ContainSubstring(tt.want)))
		})
	}
}
