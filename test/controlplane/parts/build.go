// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/child"
)

// Build returns the path of each named part's program. It builds the programs that do not
// exist yet and reports this to progress. It uses programs in the folder
// KUBEBUILDER_ASSETS as they are. Two callers never build at the same time: the second
// waits, and then finds the programs built. Under `make check`, it returns an error.
func Build(ctx context.Context, progress io.Writer, names ...Name) (map[Name]string, error) {
	if os.Getenv(noPartsVariable) != "" {
		return nil, fmt.Errorf("make check runs no %v: add the package of this test to RECONCILERS in the Makefile, or skip the test if testing.Short()", names)
	}
	paths, missing, err := locate(names)
	if err != nil || len(missing) == 0 {
		return paths, err
	}
	unlock, err := Lock(ctx, progress, "parts")
	if err != nil {
		return nil, err
	}
	defer unlock()
	paths, missing, err = locate(names)
	if err != nil || len(missing) == 0 {
		return paths, err
	}
	if err := buildAll(ctx, progress, missing); err != nil {
		return nil, err
	}
	return paths, nil
}

// noPartsVariable is an environment variable. Not empty, it makes Build fail: tests that
// run with it must need nothing but Go.
const noPartsVariable = "CONTROLPLANE_NO_PARTS"

// locate returns the path of each part and the parts whose program is missing.
func locate(names []Name) (map[Name]string, []part, error) {
	paths := make(map[Name]string, len(names))
	var missing []part
	for _, name := range names {
		p, err := find(name)
		if err != nil {
			return nil, nil, err
		}
		if path := asset(p.name); path != "" {
			paths[p.name] = path
			continue
		}
		path, err := p.binary()
		if err != nil {
			return nil, nil, err
		}
		paths[p.name] = path
		if _, err := os.Stat(path); err != nil {
			missing = append(missing, p)
		}
	}
	return paths, missing, nil
}

// asset returns the path of a program that the user already has, by the convention of
// envtest.
func asset(name Name) string {
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	if dir == "" || (name != Etcd && name != APIServer) {
		return ""
	}
	path := filepath.Join(dir, string(name))
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

func buildAll(ctx context.Context, progress io.Writer, missing []part) error {
	begun := time.Now()
	fmt.Fprintf(progress, "Building %d parts of the control plane, once; this takes some minutes.\n", len(missing))
	downloads := downloadAhead(ctx, missing)
	defer downloads.stop()
	for i, p := range missing {
		r := report{progress, fmt.Sprintf("[%d/%d] %s", i+1, len(missing), p.name), begun}
		if err := r.during(func() error { return p.build(ctx, downloads) }); err != nil {
			return fmt.Errorf("build %s: %w", p.name, err)
		}
	}
	return nil
}

// build compiles a part to a temporary file and renames the file when it is complete.
func (p part) build(ctx context.Context, downloads *downloads) error {
	modFile, err := downloads.wait(p.folder)
	if err != nil {
		return err
	}
	target, err := p.binary()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(binDir(), 0o755); err != nil {
		return err
	}
	half := target + ".half" // one name is enough: only the owner of the lock builds
	defer func() { _ = os.Remove(half) }()
	version, err := p.version()
	if err != nil {
		return err
	}
	if err := p.goCommand(ctx, "build", "-modfile", modFile, "-o", half, "-pgo=off", "-tags", p.tags, "-ldflags", linkerFlags(p, version), p.main); err != nil {
		return err
	}
	return os.Rename(half, target)
}

// linkerFlags drops the debugging information and sets the version of the Kubernetes
// programs. The compiler has the same flags for every part. Therefore all parts share its
// cache.
func linkerFlags(p part, version string) string {
	flags := "-s -w"
	if p.module != "k8s.io/kubernetes" {
		return flags
	}
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	for _, setting := range []string{"gitVersion=" + version, "gitMajor=" + major, "gitMinor=" + minor} {
		flags += " -X k8s.io/component-base/version." + setting
	}
	return flags
}

// goCommand runs the go command in the part's own module, which it must not change. It
// overrides the caller's environment only where that would change the build.
func (p part) goCommand(ctx context.Context, args ...string) error {
	_, err := p.goOutput(ctx, args...)
	return err
}

// goOutput runs the go command, which ends when this process dies. Therefore it stays on
// one thread until the command has ended.
func (p part) goOutput(ctx context.Context, args ...string) ([]byte, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = p.dir()
	scratch, err := makeScratch()
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	cmd.Env = append(append(os.Environ(), buildEnvironment...), "GOTMPDIR="+scratch, "PWD="+cmd.Dir)
	cmd.SysProcAttr = child.Attributes(syscall.SIGINT)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	output, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, exit.Stderr)
	}
	return output, err
}

// buildEnvironment makes builds without a cache fast: debugging information is a quarter
// of the compiler's work, and garbage collection a tenth. The Makefile sets the same
// flag. Therefore the project's own packages share the build cache.
var buildEnvironment = []string{
	"GOFLAGS=-mod=readonly -buildvcs=false -gcflags=all=-dwarf=false",
	"CGO_ENABLED=0", "GOWORK=off",
	"GOGC=off", "GOMEMLIMIT=2GiB",
}

// makeScratch makes the work folder of the go command. The go command cleans up after
// itself, but not when it is interrupted.
func makeScratch() (string, error) {
	if err := os.MkdirAll(binDir(), 0o755); err != nil {
		return "", fmt.Errorf("make the folder for programs: %w", err)
	}
	scratch, err := os.MkdirTemp(binDir(), ".go-*")
	if err != nil {
		return "", fmt.Errorf("make a folder for the go command: %w", err)
	}
	return scratch, nil
}

// Lock waits until no other process builds the named thing: the parts, or a program.
func Lock(ctx context.Context, progress io.Writer, what string) (unlock func(), err error) {
	if err := os.MkdirAll(binDir(), 0o755); err != nil {
		return nil, fmt.Errorf("make the folder for programs: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(binDir(), "."+what+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock for building: %w", err)
	}
	for reported := false; ; reported = true {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !reported {
			fmt.Fprintln(progress, "Another process builds the "+what+"; waiting for it.")
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("wait for another build: %w", ctx.Err())
		case <-time.After(500 * time.Millisecond):
		}
	}
}
