// SPDX-License-Identifier: Apache-2.0

// Package parts builds the programs that a control plane consists of, from Go
// modules whose versions are pinned in the go.mod files below this folder.
package parts

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Name is the name of a part and of its binary.
type Name string

// The names of all parts.
const (
	Etcd                     Name = "etcd"
	APIServer                Name = "kube-apiserver"
	ControllerManager        Name = "kube-controller-manager"
	Scheduler                Name = "kube-scheduler"
	Kubectl                  Name = "kubectl"
	KWOK                     Name = "kwok"
	SourceController         Name = "source-controller"
	KustomizeController      Name = "kustomize-controller"
	ImageReflectorController Name = "image-reflector-controller"
	NotificationController   Name = "notification-controller"
	HelmController           Name = "helm-controller"
	FluxCLI                  Name = "flux"
	KubeStateMetrics         Name = "kube-state-metrics"
	Prometheus               Name = "prometheus"
)

// part defines the source of a program.
type part struct {
	name Name
	// folder is the folder below this one whose go.mod pins the program.
	folder string
	// module contains the program, at the import path main.
	module, main string
	// tags exclude code that the control plane does not need.
	tags string
	// generated lists files that the program embeds and its module does not contain, as
	// paths in the module. They are empty in the build.
	generated []string
}

// all is in build order: parts that most callers need come first.
var all = []part{
	{name: Etcd, folder: "core", module: "go.etcd.io/etcd/server/v3", main: "go.etcd.io/etcd/server/v3"},
	{name: APIServer, folder: "core", module: "k8s.io/kubernetes", main: "k8s.io/kubernetes/cmd/kube-apiserver"},
	{name: ControllerManager, folder: "core", module: "k8s.io/kubernetes", main: "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{name: Scheduler, folder: "core", module: "k8s.io/kubernetes", main: "k8s.io/kubernetes/cmd/kube-scheduler"},
	{name: Kubectl, folder: "core", module: "k8s.io/kubernetes", main: "k8s.io/kubernetes/cmd/kubectl"},
	{name: KWOK, folder: "core", module: "sigs.k8s.io/kwok", main: "sigs.k8s.io/kwok/cmd/kwok"},
	{name: KustomizeController, folder: "core", module: "github.com/fluxcd/kustomize-controller", main: "github.com/fluxcd/kustomize-controller"},
	{name: SourceController, folder: "source", module: "github.com/fluxcd/source-controller", main: "github.com/fluxcd/source-controller"},
	{name: ImageReflectorController, folder: "source", module: "github.com/fluxcd/image-reflector-controller", main: "github.com/fluxcd/image-reflector-controller"},
	{name: NotificationController, folder: "notification", module: "github.com/fluxcd/notification-controller", main: "github.com/fluxcd/notification-controller"},
	{name: HelmController, folder: "helm", module: "github.com/fluxcd/helm-controller", main: "github.com/fluxcd/helm-controller"},
	{
		name: FluxCLI, folder: "flux", module: "github.com/fluxcd/flux2/v2", main: "github.com/fluxcd/flux2/v2/cmd/flux",
		generated: []string{"cmd/flux/manifests/none.yaml"}, // what flux install applies
	},
	{name: KubeStateMetrics, folder: "monitoring", module: "k8s.io/kube-state-metrics/v2", main: "k8s.io/kube-state-metrics/v2"},
	{
		name: Prometheus, folder: "monitoring", module: "github.com/prometheus/prometheus",
		main: "github.com/prometheus/prometheus/cmd/prometheus", tags: "remove_all_sd", // addresses are given, not discovered
	},
}

// All returns the names of all parts in build order.
func All() []Name {
	names := make([]Name, 0, len(all))
	for _, p := range all {
		names = append(names, p.name)
	}
	return names
}

// Version returns the pinned version of a part.
func Version(name Name) (string, error) {
	p, err := find(name)
	if err != nil {
		return "", err
	}
	return p.version()
}

func find(name Name) (part, error) {
	for _, p := range all {
		if p.name == name {
			return p, nil
		}
	}
	return part{}, fmt.Errorf("there is no part %q", name)
}

// Root returns the root folder of the repository.
func Root() string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(here), "..", "..", "..")
}

// dir returns the folder with the part's go.mod.
func (p part) dir() string {
	return filepath.Join(Root(), "test", "controlplane", "parts", p.folder)
}

// version returns the version of the part's module that its go.mod requires.
func (p part) version() (string, error) {
	content, err := os.ReadFile(filepath.Join(p.dir(), "go.mod"))
	if err != nil {
		return "", fmt.Errorf("find the version of %s: %w", p.name, err)
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(strings.TrimPrefix(line, "require "))
		if len(fields) >= 2 && fields[0] == p.module && strings.HasPrefix(fields[1], "v") {
			return fields[1], nil
		}
	}
	return "", fmt.Errorf("go.mod of %s requires no %s", p.name, p.module)
}

// binary returns the path of the part's program. The program may not be built yet.
func (p part) binary() (string, error) {
	version, err := p.version()
	if err != nil {
		return "", err
	}
	return filepath.Join(binDir(), string(p.name)+"-"+version), nil
}

func binDir() string { return filepath.Join(Root(), "bin", "controlplane") }
