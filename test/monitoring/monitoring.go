// SPDX-License-Identifier: Apache-2.0

// Package monitoring reads the files of config/monitoring. Tests check with it that the
// alerts and the dashboard use only metrics that exist.
package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// Query is a query of an alert, of a panel or of a dashboard's variable.
type Query struct {
	// Of names the owner of the query.
	Of string
	// Expr is the query. Grafana's variables are replaced by values.
	Expr string
}

// Alert is a rule of rules.yaml.
type Alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// File returns the path of a file in config/monitoring.
func File(name string) string { return filepath.Join(parts.Root(), "config", "monitoring", name) }

// Alerts returns the alerts of rules.yaml.
func Alerts() ([]Alert, error) {
	var file struct {
		Groups []struct {
			Name  string  `json:"name"`
			Rules []Alert `json:"rules"`
		} `json:"groups"`
	}
	if err := read("rules.yaml", &file); err != nil {
		return nil, err
	}
	var all []Alert
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	return all, nil
}

// CustomResources returns kube-state-metrics' configuration, as its chart writes it to a
// file, and the labels of each of its metrics by name. They include the labels that
// kube-state-metrics itself adds.
func CustomResources() (config []byte, metrics map[string][]string, err error) {
	var values struct {
		KubeStateMetrics struct {
			CustomResourceState struct {
				Config struct {
					Kind string `json:"kind"`
					Spec struct {
						Resources []resource `json:"resources"`
					} `json:"spec"`
				} `json:"config"`
			} `json:"customResourceState"`
		} `json:"kube-state-metrics"`
	}
	if err := read("kube-state-metrics-config.yaml", &values); err != nil {
		return nil, nil, err
	}
	metrics = map[string][]string{}
	for _, r := range values.KubeStateMetrics.CustomResourceState.Config.Spec.Resources {
		for _, m := range r.Metrics {
			metrics[m.Name] = append(metrics[m.Name], r.labelsOf(m)...)
		}
	}
	config, err = yaml.Marshal(values.KubeStateMetrics.CustomResourceState.Config)
	return config, metrics, err
}

type resource struct {
	GroupVersionKind map[string]string   `json:"groupVersionKind"`
	MetricNamePrefix *string             `json:"metricNamePrefix"`
	LabelsFromPath   map[string][]string `json:"labelsFromPath"`
	Metrics          []metric            `json:"metrics"`
}

type metric struct {
	Name           string              `json:"name"`
	Help           string              `json:"help"`
	ErrorLogV      int                 `json:"errorLogV,omitempty"`
	LabelsFromPath map[string][]string `json:"labelsFromPath,omitempty"`
	Each           struct {
		Type  string  `json:"type"`
		Info  *values `json:"info,omitempty"`
		Gauge *values `json:"gauge,omitempty"`
	} `json:"each"`
}

type values struct {
	Path           []string            `json:"path,omitempty"`
	ValueFrom      []string            `json:"valueFrom,omitempty"`
	LabelsFromPath map[string][]string `json:"labelsFromPath,omitempty"`
}

func (r resource) labelsOf(m metric) []string {
	labels := []string{"customresource_group", "customresource_version", "customresource_kind"}
	add := func(more map[string][]string) {
		for label := range more {
			labels = append(labels, label)
		}
	}
	add(r.LabelsFromPath)
	add(m.LabelsFromPath)
	for _, v := range []*values{m.Each.Info, m.Each.Gauge} {
		if v != nil {
			add(v.LabelsFromPath)
		}
	}
	return labels
}

// The values of Grafana's variables in a view of the last minutes of all objects.
var variables = strings.NewReplacer(
	"$__rate_interval", "2m", "$__range_s", "600", "$__range", "10m", "$namespace", ".*", "$rollout", ".*")

var labelValues = regexp.MustCompile(`^label_values\((.+), *[a-z_]+\)$`)

// Dashboard returns the queries of a dashboard's panels and variables.
func Dashboard(file string) ([]Query, error) {
	var dashboard struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
		Templating struct {
			List []struct {
				Name       string `json:"name"`
				Definition string `json:"definition"`
			} `json:"list"`
		} `json:"templating"`
	}
	content, err := os.ReadFile(File(filepath.Join("dashboards", file)))
	if err != nil {
		return nil, fmt.Errorf("read a dashboard: %w", err)
	}
	if err := json.Unmarshal(content, &dashboard); err != nil {
		return nil, fmt.Errorf("read the dashboard %s: %w", file, err)
	}
	var all []Query
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			all = append(all, Query{Of: "panel " + panel.Title, Expr: variables.Replace(target.Expr)})
		}
	}
	for _, variable := range dashboard.Templating.List {
		if found := labelValues.FindStringSubmatch(variables.Replace(variable.Definition)); found != nil {
			all = append(all, Query{Of: "variable " + variable.Name, Expr: found[1]})
		}
	}
	return all, nil
}

// Queries returns the queries of all alerts and of the dashboard.
func Queries() ([]Query, error) {
	all, err := Dashboard("rollouts.json")
	if err != nil {
		return nil, err
	}
	alerts, err := Alerts()
	if err != nil {
		return nil, err
	}
	for _, alert := range alerts {
		all = append(all, Query{Of: "alert " + alert.Alert, Expr: alert.Expr})
	}
	return all, nil
}

func read(name string, into any) error {
	content, err := os.ReadFile(File(name))
	if err != nil {
		return fmt.Errorf("read what monitors: %w", err)
	}
	if err := yaml.Unmarshal(content, into); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}
