// SPDX-License-Identifier: Apache-2.0

// Package internal_test checks what packages may import.
package internal_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/fluxrollouts/rollout-controller/"

// reading contains the packages that read and write: an API server, a registry, files, the
// clock or the log. Every other package is pure: what it decides depends on its arguments
// alone. A new package is pure until it is added here.
var reading = []string{
	"internal/admission", "internal/announce", "internal/background", "internal/cache", "internal/cli", "internal/controller",
	"internal/fair", "internal/flux/imagepolicy", "internal/flux/notify", "internal/flux/targets", "internal/gather",
	"internal/health/class", "internal/health/destination", "internal/health/pool", "internal/health/probe", "internal/identity", "internal/live",
	"internal/metrics", "internal/registry", "internal/shard", "internal/uninstall", "internal/unreadable", "internal/write",
}

// effects are the packages of the standard library that pure packages do not import.
var effects = []string{"context", "crypto/rand", "log", "math/rand", "net", "os", "path/filepath"}

// values are the modules whose types and functions pure packages use.
var values = []string{
	"github.com/Masterminds/semver/v3", "github.com/google/go-containerregistry/pkg/name", "github.com/robfig/cron/v3", "k8s.io/utils/ptr",
	"k8s.io/apimachinery/pkg/api/equality", "k8s.io/apimachinery/pkg/api/meta", "k8s.io/apimachinery/pkg/apis/meta/v1",
	"k8s.io/apimachinery/pkg/labels", "k8s.io/apimachinery/pkg/runtime/schema", "k8s.io/apimachinery/pkg/types",
}

// further contains what single pure packages import besides.
var further = map[string][]string{
	"api":                       {"k8s.io/apimachinery/pkg/runtime", "k8s.io/apimachinery/pkg/util/intstr"},
	"internal/cli/explain":      nil,
	"internal/cli/incident":     nil,
	"internal/cli/measured":     nil,
	"internal/cli/pipeline":     nil,
	"internal/cli/request":      nil,
	"internal/cli/simulation":   nil,
	"internal/flux/inventory":   {"k8s.io/api"},
	"internal/health/condition": {"context", "github.com/google/cel-go"}, // an expression is interrupted
	"internal/health/variables": {"net/url"},
	"internal/installation":     {"k8s.io/api", "github.com/fluxcd/pkg/runtime"}, // the name of a Lease
	"internal/report":           {"context", "github.com/secure-systems-lab/go-securesystemslib/dsse"},
	"internal/workload":         {"k8s.io/api", "k8s.io/apimachinery/pkg", "github.com/fluxcd/cli-utils/pkg/kstatus", "github.com/fluxcd/pkg/apis/meta"},
	// Lint works without a network and a home directory.
	"internal/cli/lint": {"context", "config", "internal/cli/kinds", "go.yaml.in/yaml/v3", "k8s.io/apiextensions-apiserver/pkg", "k8s.io/apimachinery/pkg", "sigs.k8s.io/yaml"},
}

// tests are what the tests of pure packages import besides: they need no API server.
var tests = []string{"github.com/google/go-cmp/cmp", "github.com/onsi/gomega", "k8s.io/apimachinery/pkg", "test/fixture"}

func TestPackagesImportWhatTheyMay(t *testing.T) {
	for file, imports := range imported(t) {
		for _, path := range imports {
			if reason := refused(filepath.ToSlash(filepath.Dir(file)), path, strings.HasSuffix(file, "_test.go")); reason != "" {
				t.Errorf("%s imports %s: %s", file, path, reason)
			}
		}
	}
}

func TestNewPackagesArePure(t *testing.T) {
	for path, want := range map[string]bool{
		"slices": true, "os": false, "context": false, "k8s.io/apimachinery/pkg/types": true, "sigs.k8s.io/controller-runtime/pkg/client": false,
		module + "api/v1alpha1": true, module + "internal/promotion": true, module + "internal/gather": false, module + "internal/cli/explain": false,
	} {
		if may := refused("internal/promotion/leaf", path, false) == ""; may != want {
			t.Errorf("a new package may import %s: %v, want %v", path, may, want)
		}
	}
}

// refused returns why a package may not import another; empty if it may.
func refused(from, path string, test bool) string {
	also, isPure := pure(from)
	standard := !strings.Contains(strings.Split(path, "/")[0], ".")
	path, ours := strings.CutPrefix(path, module)
	switch _, target := pure(path); {
	case test && (standard || isOneOf(path, tests) || isOneOf(from, []string{"internal/cli"})):
		return ""
	case isPure && !isOneOf(path, also) && (standard && isOneOf(path, effects) || ours && !target || !standard && !ours && !isOneOf(path, values)):
		return "what a pure package decides depends on its arguments alone; read in internal/gather, and pass the result"
	case test:
		return ""
	case isOneOf(from, []string{"api"}) && isOneOf(path, []string{"internal"}):
		return "the API consists of types"
	case isOneOf(path, []string{"internal/cli"}) && !isOneOf(from, []string{"internal/cli", "cmd/flux-rollout", "cmd/rollout-web"}):
		return "the controller needs nothing of the command line"
	case isOneOf(path, []string{"internal/controller", "internal/registry"}) && isOneOf(from, []string{"internal/cli"}):
		return "the command line asks the API server, and decides through internal/gather and internal/promotion"
	}
	return ""
}

// pure reports whether a package is pure, and what it imports besides values.
func pure(folder string) ([]string, bool) {
	for at := folder; at != "."; at = filepath.ToSlash(filepath.Dir(at)) {
		if also, listed := further[at]; listed {
			return also, true
		}
		if slices.Contains(reading, at) {
			return nil, false
		}
	}
	return nil, isOneOf(folder, []string{"internal"})
}

// isOneOf reports whether a path is one of some folders, or below one.
func isOneOf(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") })
}

// imported returns what each file of the program imports.
func imported(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, folder := range []string{"api", "cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join("..", folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			name := strings.TrimPrefix(filepath.ToSlash(path), "../")
			for _, spec := range file.Imports {
				imports, _ := strconv.Unquote(spec.Path.Value)
				all[name] = append(all[name], imports)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestNoListOfImportsIsOld(t *testing.T) {
	used := map[string]bool{}
	for file := range imported(t) {
		for at := filepath.ToSlash(filepath.Dir(file)); at != "."; at = filepath.ToSlash(filepath.Dir(at)) {
			used[at] = true
		}
	}
	for folder := range further {
		if !used[folder] {
			t.Errorf("further names %s, which has no package", folder)
		}
	}
	for _, folder := range reading {
		if !used[folder] {
			t.Errorf("reading names %s, which has no package", folder)
		}
	}
}
