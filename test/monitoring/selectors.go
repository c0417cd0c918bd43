// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// Selector is a part of a query that selects series.
type Selector struct {
	// Metric is the name of the series.
	Metric string `json:"metric"`
	// Labels are the labels by which they are selected.
	Labels []string `json:"labels"`
}

// Selectors reads queries with Prometheus' own parser and returns the selectors of each.
// The error names each query that the parser cannot read. The parser is in its own
// module, next to the Prometheus that the end-to-end tests run.
func Selectors(ctx context.Context, queries []Query) ([][]Selector, error) {
	texts := make([]string, 0, len(queries))
	for _, q := range queries {
		texts = append(texts, q.Expr)
	}
	input, err := json.Marshal(texts)
	if err != nil {
		return nil, fmt.Errorf("write the queries: %w", err)
	}
	output, err := parse(ctx, input)
	if err != nil {
		return nil, err
	}
	var parsed []struct {
		Error     string     `json:"error"`
		Selectors []Selector `json:"selectors"`
	}
	if err := json.Unmarshal(output, &parsed); err != nil {
		return nil, fmt.Errorf("read what the parser says: %w", err)
	}
	all, wrong := make([][]Selector, 0, len(parsed)), []error{}
	for i, p := range parsed {
		if p.Error != "" {
			wrong = append(wrong, fmt.Errorf("%s: %s in\n%s", queries[i].Of, p.Error, queries[i].Expr))
		}
		all = append(all, p.Selectors)
	}
	return all, errors.Join(wrong...)
}

func parse(ctx context.Context, queries []byte) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", "run", "./selectors")
	command.Dir = filepath.Join(parts.Root(), "test", "controlplane", "parts", "monitoring")
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "PWD="+command.Dir)
	command.Stdin = bytes.NewReader(queries)
	output, err := command.Output()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		return nil, fmt.Errorf("read queries with the parser of Prometheus: %s", exit.Stderr)
	}
	return output, err
}
