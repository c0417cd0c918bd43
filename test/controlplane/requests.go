// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"fmt"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"
)

// Request is a kind of request to the API server. The verbs are those of its metric: GET,
// LIST, WATCH, POST, PUT, PATCH, APPLY, DELETE, DELETECOLLECTION.
type Request struct {
	Verb, Group, Resource, Subresource string
}

// Requests is the number of requests of each kind.
type Requests map[Request]int

// Requests returns the API server's own count of the requests of all clients since it
// started. A watch counts when it is opened.
func (c *ControlPlane) Requests(ctx context.Context) (Requests, error) {
	clients, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return nil, fmt.Errorf("make a client for metrics: %w", err)
	}
	text, err := clients.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the API server's metrics: %w", err)
	}
	return parseRequests(text)
}

// The metrics that count requests. The API server counts a watch as completed when it
// ends; until then it is only among the second.
const (
	completedRequests = "apiserver_request_total"
	runningRequests   = "apiserver_longrunning_requests"
)

// parseRequests adds the open watches to the completed requests.
func parseRequests(text []byte) (Requests, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(linesOf(text, completedRequests, runningRequests)))
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	counts := Requests{}
	for _, m := range families[completedRequests].GetMetric() {
		counts[requestOf(m)] += int(m.GetCounter().GetValue())
	}
	for _, m := range families[runningRequests].GetMetric() {
		if n := int(m.GetGauge().GetValue()); n != 0 {
			counts[requestOf(m)] += n
		}
	}
	return counts, nil
}

// linesOf returns the lines of some metrics. An API server has tens of thousands of lines:
// to parse them all is most of the work of a test that counts requests.
func linesOf(text []byte, metrics ...string) []byte {
	var lines []byte
	for line := range bytes.Lines(text) {
		name := bytes.TrimPrefix(line, []byte("# TYPE "))
		for _, metric := range metrics {
			if bytes.HasPrefix(name, []byte(metric)) {
				lines = append(lines, line...)
			}
		}
	}
	return lines
}

func requestOf(m *dto.Metric) Request {
	var r Request
	for _, label := range m.GetLabel() {
		switch label.GetName() {
		case "verb":
			r.Verb = label.GetValue()
		case "group":
			r.Group = label.GetValue()
		case "resource":
			r.Resource = label.GetValue()
		case "subresource":
			r.Subresource = label.GetValue()
		}
	}
	return r
}

// Since returns the requests made after an earlier count.
func (r Requests) Since(earlier Requests) Requests {
	difference := Requests{}
	for request, n := range r {
		if d := n - earlier[request]; d != 0 {
			difference[request] = d
		}
	}
	return difference
}

// Count returns the number of the requests that the caller selects.
func (r Requests) Count(selected func(Request) bool) int {
	total := 0
	for request, n := range r {
		if selected(request) {
			total += n
		}
	}
	return total
}

// IsWrite reports whether a request changes something.
func (r Request) IsWrite() bool {
	switch r.Verb {
	case "POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION":
		return true
	}
	return false
}
