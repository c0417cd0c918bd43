// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
)

// program is what the image has under a name, and the package that it is built from.
type program struct{ name, source string }

// programs are the controller, and the page in a cluster.
var programs = []program{{"rollout-controller", "./cmd/controller"}, {"rollout-web", "./cmd/rollout-web"}}

// compile builds a program for an architecture as the Dockerfile does. The flags that
// the environment has for Go are not used: they would change the bytes.
func compile(ctx context.Context, p program, version, arch string) ([]byte, error) {
	folder, err := os.MkdirTemp("", "image-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, p.name)
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false",
		"-ldflags", "-s -w -buildid= -X main.version="+version, "-o", path, p.source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=", "GOOS=linux", "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}
