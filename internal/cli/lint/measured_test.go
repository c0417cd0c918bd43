// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
)

func TestHealthCheckThatCannotBeMeasuredIsFoundAtItsField(t *testing.T) {
	for name, test := range map[string]struct {
		spec string
		line int    // of the finding; 0 if there is none
		want string // in its message
	}{
		"a query and a condition": {spec: `
  class: prometheus
  prometheus: {query: 'sum(rate(errors{version="$(version)"}[$(window)]))', window: 2m, condition: value <= 0.01}`},
		"a query with an unknown variable": {line: 7, want: "unknown variable $(tag)", spec: `
  class: prometheus
  prometheus:
    query: 'errors{version="$(tag)"}'
    condition: value <= 0.01`},
		"a window that is not set": {line: 7, want: "so set spec.prometheus.window", spec: `
  class: prometheus
  prometheus:
    query: 'rate(errors[$(window)])'
    condition: value <= 0.01`},
		"a condition with an unknown name": {line: 8, want: "undeclared reference to 'valu'", spec: `
  class: prometheus
  prometheus:
    query: errors
    condition: valu <= 0.01`},
		"a request": {spec: `
  class: http
  http: {service: {name: shop, path: '/status?expect=$(version)'}, condition: json.version == release.tag}`},
		"a request without a condition": {spec: `
  class: http
  http: {service: {name: shop}}`},
		"a variable in a host": {line: 7, want: "a variable may stand only in the path and the query", spec: `
  class: http
  http:
    url: https://$(rollout).example.com`},
		"an expression about an object": {line: 10, want: "Syntax error", spec: `
  class: object
  object:
    apiVersion: cert-manager.io/v1
    kind: Certificate
    name: shop
    current: status.phase = 'Ready'`},
		"a class of somebody else":   {spec: "\n  class: prometheus-alert"},
		"a class without its block":  {spec: "\n  class: prometheus"},
		"a condition with variables": {spec: "\n  class: http\n  http: {service: {name: shop}, condition: '${condition}'}"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			content := "apiVersion: kuberik.com/v1alpha1\nkind: HealthCheck\nmetadata: {name: shop, namespace: shop}\nspec:" + test.spec + "\n"
			result := lint.Files([]lint.File{{Name: "check.yaml", Content: []byte(content)}}, lint.Options{Now: noon})
			if test.line == 0 {
				g.Expect(result.Findings).To(BeEmpty())
				return
			}
			g.Expect(result.Findings).To(HaveLen(1))
			g.Expect(result.Findings[0].Rule).To(Equal("R307"))
			g.Expect(result.Findings[0].Message).To(ContainSubstring(test.want))
			g.Expect(result.Findings[0].Line).To(Equal(test.line))
		})
	}
}
