// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestFlagsOfThePrometheusOfAll(t *testing.T) {
	const address, credentials = "--prometheus-address=http://prometheus:9090", "--prometheus-credentials=mimir"
	for name, test := range map[string]struct {
		namespace string
		args      []string
		refusal   string // empty if they can be used
	}{
		"an address":               {"", []string{address}, ""},
		"with credentials":         {"kuberik-system", []string{address, credentials}, ""},
		"credentials alone":        {"kuberik-system", []string{credentials}, "--prometheus-credentials needs --prometheus-address"},
		"credentials from nowhere": {"", []string{address, credentials}, "needs the environment variable RUNTIME_NAMESPACE"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := parse(t, test.namespace, test.args...)
			if test.refusal == "" && err != nil || test.refusal != "" && (err == nil || !strings.Contains(err.Error(), test.refusal)) {
				t.Errorf("error %v, want %q", err, test.refusal)
			}
		})
	}
}
