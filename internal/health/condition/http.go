// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"

	"github.com/fluxrollouts/rollout-controller/internal/health"
)

// Response is an HTTP response: the variables of the class http.
type Response struct {
	// Status is the status code.
	Status int
	// Body is at most health.MostOfBody bytes of the body. If it is a JSON document, it is the
	// variable json, too.
	Body string
	// Headers are the values by the name of the header. Expressions see the names in lower
	// case.
	Headers map[string][]string
	// Latency is the time from the request to the end of the body.
	Latency time.Duration
	// Release that is measured.
	Release Release
	// Elapsed is the time since the HealthCheck was reset.
	Elapsed time.Duration
}

func (r Response) values() (map[string]any, error) {
	if len(r.Body) > health.MostOfBody {
		return nil, refusal(fmt.Sprintf("the body has more than %d bytes", health.MostOfBody))
	}
	headers, size := map[string][]string{}, 0
	for name, values := range r.Headers {
		name = strings.ToLower(name)
		headers[name] = append(headers[name], values...)
		size += len(name) + len(strings.Join(values, ""))
	}
	if size > health.MostOfHeaders {
		return nil, refusal(fmt.Sprintf("the headers have more than %d bytes", health.MostOfHeaders))
	}
	return map[string]any{
		"status": r.Status, "body": r.Body, "json": r.json, "headers": headers, "latency": r.Latency,
		"release": r.Release.fields(), "elapsed": r.Elapsed,
	}, nil
}

// json decodes the body when an expression asks for it.
func (r Response) json() any {
	var document any
	if err := json.Unmarshal([]byte(r.Body), &document); err != nil {
		return types.WrapErr(refusal("json is not defined, because the body is not a JSON document"))
	}
	if document == nil {
		return types.NullValue
	}
	return document
}
