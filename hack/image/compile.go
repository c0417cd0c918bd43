// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
)

// compile builds the controller for an architecture as the Dockerfile does. The flags that
// the environment has for Go are not used: they would change the bytes.
func compile(ctx context.Context, version, arch string) ([]byte, error) {
	folder, err := os.MkdirTemp("", "image-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, "rollout-controller")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false",
		"-ldflags", "-s -w -buildid= -X main.version="+version, "-o", path, "./cmd/controller")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=", "GOOS=linux", "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}
