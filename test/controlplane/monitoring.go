// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"

	"sigs.k8s.io/yaml"

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
	server := c.newProcess(string(parts.Prometheus), binaries[parts.Prometheus], []string{
		"--config.file=" + config,
		"--storage.tsdb.path=" + c.dir.file("prometheus"),
		"--web.listen-address=" + address(prometheus),
		"--log.level=warn",
	})
	server.ready = answersOK(http.DefaultClient, url+"/-/ready")
	return url, inParallel(
		func() error { return exporter.Start(ctx) },
		func() error { return server.Start(ctx) },
	)
}

// writePrometheusConfig sets a scrape interval of one second. It keeps the namespace
// labels of kube-state-metrics, as an installation with its chart does.
func (m Monitoring) writePrometheusConfig(path, state string) error {
	type job map[string]any
	static := func(address string) []job { return []job{{"targets": []string{address}}} }
	jobs := []job{{"job_name": "kube-state-metrics", "honor_labels": true, "static_configs": static(state)}}
	for _, name := range slices.Sorted(maps.Keys(m.Targets)) {
		jobs = append(jobs, job{"job_name": name, "static_configs": static(m.Targets[name])})
	}
	content, err := yaml.Marshal(map[string]any{
		"global":         map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"rule_files":     m.Rules,
		"scrape_configs": jobs,
	})
	if err != nil {
		return fmt.Errorf("write the configuration of Prometheus: %w", err)
	}
	return os.WriteFile(path, content, 0o600)
}
