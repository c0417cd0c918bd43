// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// platform is an operating system and a processor, as Go names them.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// program is the name of the file, at the root of each archive.
const program = "flux-rollout"

// program returns the name of the file on the platform.
func (p platform) program() string {
	if p.os == "windows" {
		return program + ".exe"
	}
	return program
}

var isPlatform = regexp.MustCompile(`^[a-z0-9]+/[a-z0-9]+$`)

func parsePlatforms(text string) ([]platform, error) {
	var all []platform
	for name := range strings.FieldsSeq(text) {
		if !isPlatform.MatchString(name) {
			return nil, fmt.Errorf("%q is not a platform: say one such as linux/amd64, with -platforms", name)
		}
		system, arch, _ := strings.Cut(name, "/")
		all = append(all, platform{system, arch})
	}
	if len(all) == 0 {
		return nil, errors.New("say for which platforms, with -platforms")
	}
	return all, nil
}

// compile builds the command line for a platform. The flags that the environment has for
// Go are not used: they would change the bytes.
func compile(ctx context.Context, r release, p platform) ([]byte, error) {
	folder, err := os.MkdirTemp("", "release-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, p.program())
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false",
		"-ldflags=-s -w -buildid= -X main.version="+r.version, "-o", path, "./cmd/flux-rollout")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=", "GOOS="+p.os, "GOARCH="+p.arch, "GOAMD64=v1", "GOARM64=v8.0")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}
