// SPDX-License-Identifier: Apache-2.0

package class_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health/class"
	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// The API server rejects some of the headers that the controller does not send. The others
// are a problem that names the field.
func TestHeaderThatIsNotSentIsAProblem(t *testing.T) {
	g := NewWithT(t)
	allowed, err := destination.ParseList([]string{"http://shop.example.com"})
	g.Expect(err).NotTo(HaveOccurred())
	means := class.Means{Allowed: allowed, Prometheus: "http://shop.example.com"}
	headers := []v1alpha1.Header{{Name: "Upgrade", Value: "h2c"}}

	http := fixture.MakeHealthCheck("smoke").HTTP("http://shop.example.com").Obj()
	http.Spec.HTTP.Headers = headers
	_, err = means.Compile(http)
	g.Expect(err).To(MatchError("spec.http.headers: Upgrade cannot be set; use secretRef for credentials"))

	prometheus := fixture.MakeHealthCheck("errors").Prometheus("errors", "value < 1.0").Obj()
	prometheus.Spec.Prometheus.Headers = headers
	_, err = means.Compile(prometheus)
	g.Expect(err).To(MatchError("spec.prometheus.headers: Upgrade cannot be set; use secretRef for credentials"))
}
