// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestFlagsOfReports(t *testing.T) {
	for name, test := range map[string]struct {
		namespace string
		args      []string
		refusal   string // empty if they can be used
	}{
		"none":                   {"", nil, ""},
		"all":                    {"flux-system", []string{"--cluster-name=staging-eu", "--signing-key-secret=key", "--trusted-keys-secret=keys", "--registry-qps=0", "--registry-burst=0"}, ""},
		"only a cluster":         {"", []string{"--cluster-name=staging-eu"}, ""},
		"only keys":              {"flux-system", []string{"--trusted-keys-secret=keys"}, ""},
		"a key without name":     {"flux-system", []string{"--signing-key-secret=key"}, "--signing-key-secret needs --cluster-name"},
		"a key from nowhere":     {"", []string{"--cluster-name=a", "--signing-key-secret=key"}, "need the environment variable RUNTIME_NAMESPACE"},
		"keys from nowhere":      {"", []string{"--trusted-keys-secret=keys"}, "need the environment variable RUNTIME_NAMESPACE"},
		"a name with a slash":    {"", []string{"--cluster-name=eu/staging"}, `letters, digits, "-" and "_"`},
		"a name with a space":    {"", []string{"--cluster-name=eu staging"}, `letters, digits, "-" and "_"`},
		"a name with a dot":      {"", []string{"--cluster-name=prod.eu"}, `letters, digits, "-" and "_"`},
		"any":                    {"", []string{"--cluster-name=any"}, "not \"any\""},
		"a cluster to take over": {"", []string{"--cluster-name=a", "--take-over-reports-of=5f2c7a3e-0d7e-4f5b-9d6c-2f4a2f3c9b11"}, ""},
		"one that is no UID":     {"", []string{"--cluster-name=a", "--take-over-reports-of=the old one"}, "give the UID of the namespace kube-system"},
		"one without a name":     {"", []string{"--take-over-reports-of=5f2c"}, "and --cluster-name"},
		"a long name":            {"", []string{"--cluster-name=" + strings.Repeat("x", 254)}, "at most 253 characters"},
		"fewer than none":        {"", []string{"--registry-qps=-1"}, "--registry-qps must not be negative"},
		"none at once":           {"", []string{"--registry-burst=0"}, "--registry-burst must be at least 1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := parse(t, test.namespace, test.args...)
			if test.refusal == "" && err != nil || test.refusal != "" && (err == nil || !strings.Contains(err.Error(), test.refusal)) {
				t.Errorf("error %v, want %q", err, test.refusal)
			}
		})
	}
}
