// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// Prometheus is a Prometheus without a control plane.
type Prometheus struct {
	// URL is where it serves.
	URL string

	server *Process
}

// StartPrometheus builds Prometheus if it is missing, and starts it. It keeps its data and
// its log in the folder dir. It scrapes the targets, which are addresses by the name of a
// job, once a second. Stop it at the end.
func StartPrometheus(ctx context.Context, dir string, targets map[string]string) (*Prometheus, error) {
	binaries, err := parts.Build(ctx, os.Stderr, parts.Prometheus)
	if err != nil {
		return nil, err
	}
	at, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "prometheus.yaml")
	if err := writePrometheusConfig(config, nil, scrapeJobs(targets)); err != nil {
		return nil, err
	}
	p := &Prometheus{URL: "http://" + at, server: &Process{
		Name: string(parts.Prometheus), Path: binaries[parts.Prometheus],
		Args:    prometheusArgs(config, filepath.Join(dir, "data"), at),
		LogFile: filepath.Join(dir, "prometheus.log"),
		starter: newStarter(),
	}}
	p.server.ready = answersOK(http.DefaultClient, p.URL+"/-/ready")
	if err := p.server.Start(ctx); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// Stop ends Prometheus at once.
func (p *Prometheus) Stop() error {
	defer p.server.starter.close()
	return p.server.Kill()
}

func prometheusArgs(config, data, address string) []string {
	return []string{
		"--config.file=" + config,
		"--storage.tsdb.path=" + data,
		"--web.listen-address=" + address,
		"--log.level=warn",
	}
}

// scrapeJob is the configuration of a target.
func scrapeJob(name, address string) map[string]any {
	return map[string]any{"job_name": name, "static_configs": []map[string]any{{"targets": []string{address}}}}
}

func scrapeJobs(targets map[string]string) []map[string]any {
	var jobs []map[string]any
	for _, name := range slices.Sorted(maps.Keys(targets)) {
		jobs = append(jobs, scrapeJob(name, targets[name]))
	}
	return jobs
}

func writePrometheusConfig(path string, rules []string, jobs []map[string]any) error {
	content, err := yaml.Marshal(map[string]any{
		"global":         map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"rule_files":     rules,
		"scrape_configs": jobs,
	})
	if err != nil {
		return fmt.Errorf("write the configuration of Prometheus: %w", err)
	}
	return os.WriteFile(path, content, 0o600)
}
