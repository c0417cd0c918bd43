// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"net/http"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// Monitoring configures how a control plane is monitored.
type Monitoring struct {
	// CustomResources is the path of kube-state-metrics' configuration.
	CustomResources string
	// Rules are the paths of rule files.
	Rules []string
	// Targets maps the name of a job to the address whose /metrics is read.
	Targets map[string]string
}

// StartMonitoring builds the missing parts and starts kube-state-metrics, for custom
// resources alone, and Prometheus. Prometheus scrapes kube-state-metrics and the targets
// once a second. StartMonitoring returns the URL of Prometheus.
func (c *ControlPlane) StartMonitoring(ctx context.Context, m Monitoring) (string, error) {
	binaries, err := parts.Build(ctx, c.options.Progress, parts.KubeStateMetrics, parts.Prometheus)
	if err != nil {
		return "", err
	}
	var state, telemetry, prometheus int
	if err := c.ports.takeAll(&state, &telemetry, &prometheus); err != nil {
		return "", err
	}
	config := c.dir.file("prometheus.yaml")
	if err := m.writePrometheusConfig(config, address(state)); err != nil {
		return "", err
	}
	url := "http://" + address(prometheus)
	exporter := c.newProcess(string(parts.KubeStateMetrics), binaries[parts.KubeStateMetrics], []string{
		"--kubeconfig=" + c.kubeconfig,
		"--custom-resource-state-only",
		"--custom-resource-state-config-file=" + m.CustomResources,
		"--host=127.0.0.1", fmt.Sprintf("--port=%d", state),
		"--telemetry-host=127.0.0.1", fmt.Sprintf("--telemetry-port=%d", telemetry),
	})
	exporter.ready = answersOK(http.DefaultClient, "http://"+address(state)+"/healthz")
	server := c.newProcess(string(parts.Prometheus), binaries[parts.Prometheus],
		prometheusArgs(config, c.dir.file("prometheus"), address(prometheus)))
	server.ready = answersOK(http.DefaultClient, url+"/-/ready")
	return url, inParallel(
		func() error { return exporter.Start(ctx) },
		func() error { return server.Start(ctx) },
	)
}

// writePrometheusConfig sets a scrape interval of one second. It keeps the namespace
// labels of kube-state-metrics, as an installation with its chart does.
func (m Monitoring) writePrometheusConfig(path, state string) error {
	exporter := scrapeJob("kube-state-metrics", state)
	exporter["honor_labels"] = true
	return writePrometheusConfig(path, m.Rules, append([]map[string]any{exporter}, scrapeJobs(m.Targets)...))
}
