// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

const (
	// startLimit limits one attempt to start the parts, after they are built.
	startLimit = 2 * time.Minute
	// attempts is how many times Start tries, each time with other ports and processes.
	attempts = 3
)

// ControlPlane is a running control plane. Its methods are safe for concurrent use.
type ControlPlane struct {
	// Registry stores the released artifacts. Other control planes may share it.
	Registry *Registry

	options   Options
	binaries  map[parts.Name]string
	logDir    string
	dir       *workDir
	ports     *ports
	starter   *starter
	authority *authority
	admin     *rest.Config
	client    client.Client

	etcdURL    string
	apiPort    int
	kubeconfig string
	eventsURL  string

	mu        sync.Mutex
	processes []*Process
	stopped   bool
	stopping  chan struct{} // closed by Stop
	stalls    func()        // waits for the goroutine of stall
}

// Start builds the missing parts, starts those that the options ask for and waits until
// they serve. Building may take minutes; only ctx limits it. If Start fails, it stops the
// processes that it started. If it succeeds, they outlive ctx.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	binaries, err := parts.Build(ctx, options.Progress, options.parts()...)
	if err != nil {
		return nil, err
	}
	if err := countStart(); err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		c, err := startOnce(ctx, options, binaries)
		if err == nil || attempt == attempts || !portWasTaken(err) && !errors.Is(err, errNoReplica) {
			return c, err
		}
		_, _ = fmt.Fprintf(options.Progress, "==> Starting the control plane again: %v\n", err)
	}
}

// startsVariable is an environment variable. It names a file to which each start adds a
// byte.
const startsVariable = "CONTROLPLANE_STARTS"

func countStart() error {
	path := os.Getenv(startsVariable)
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("count the start of a control plane: %w", err)
	}
	defer func() { _ = f.Close() }()
	_, err = f.WriteString(".")
	return err
}

func portWasTaken(err error) bool {
	return strings.Contains(err.Error(), "address already in use")
}

func startOnce(ctx context.Context, options Options, binaries map[parts.Name]string) (*ControlPlane, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	c, err := prepare(options, binaries)
	if err != nil {
		return nil, err
	}
	if err := c.startParts(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	if err := c.stall(); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// prepare makes everything that must exist before the first process starts.
func prepare(options Options, binaries map[parts.Name]string) (*ControlPlane, error) {
	dir, err := newWorkDir(options.Name)
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{
		options: options, binaries: binaries, dir: dir, ports: &ports{}, starter: newStarter(),
		stopping: make(chan struct{}), stalls: func() {},
	}
	if err := c.makeFolders(); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	if c.authority, err = newAuthority(); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	if c.Registry, err = c.registry(); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// makeFolders makes the folders that processes write to.
func (c *ControlPlane) makeFolders() error {
	c.logDir = c.options.LogDir
	if c.logDir == "" {
		c.logDir = c.dir.file("logs")
	}
	if err := os.MkdirAll(c.logDir, 0o755); err != nil {
		return fmt.Errorf("make the folder for logs: %w", err)
	}
	if err := os.MkdirAll(c.dir.file("races"), 0o755); err != nil {
		return fmt.Errorf("make the folder for data races: %w", err)
	}
	return nil
}

// startParts starts the API server first, then the parts that call it.
func (c *ControlPlane) startParts(ctx context.Context) error {
	var crds []*apiextensionsv1.CustomResourceDefinition
	if err := inParallel(
		func() error { return c.startAPIServer(ctx) },
		func() (err error) { crds, err = c.loadCRDs(ctx); return err },
	); err != nil {
		return err
	}
	if err := c.installCRDs(ctx, crds); err != nil {
		return err
	}
	return inParallel(
		func() error { return c.startWorkloads(ctx) },
		func() error { return c.startFlux(ctx) },
	)
}

// startAPIServer starts etcd and the API server in parallel. The API server itself waits
// for etcd.
func (c *ControlPlane) startAPIServer(ctx context.Context) error {
	etcd, err := c.etcd()
	if err != nil {
		return err
	}
	server, err := c.apiServer()
	if err != nil {
		return err
	}
	if err := c.makeAdmin(); err != nil {
		return err
	}
	if err := inParallel(
		func() error { return etcd.Start(ctx) },
		func() error { return server.Start(ctx) },
	); err != nil {
		return err
	}
	c.client, err = newClient(c.admin, c.options.ImageVersion)
	return err
}

func (c *ControlPlane) makeAdmin() (err error) {
	if c.admin, err = c.userConfig("admin", []string{adminGroup}); err != nil {
		return err
	}
	if c.kubeconfig, err = c.AddUser("admin", adminGroup); err != nil {
		return err
	}
	return nil
}

// Stop kills all processes, in the reverse order of their start, and removes their files.
// It may be called more than once. It returns an error if a part had ended by itself, or
// if the race detector has found a data race in a program that was started with
// StartProcess.
func (c *ControlPlane) Stop() error {
	c.mu.Lock()
	if c.stopped {
		c.mu.Unlock()
		return nil
	}
	c.stopped = true
	processes := slices.Clone(c.processes)
	c.mu.Unlock()
	close(c.stopping)
	c.stalls()

	err := errors.Join(c.endedParts(processes), stopAll(processes))
	if c.Registry != nil && c.Registry != c.options.Registry {
		err = errors.Join(err, c.Registry.close())
	}
	c.starter.close()
	c.ports.release()
	return errors.Join(err, c.races(), c.dir.remove())
}

// endedParts returns an error for each part that ended by itself. Without it, tests fail
// for reasons that do not name the part.
func (c *ControlPlane) endedParts(processes []*Process) error {
	var errs []error
	for _, p := range processes {
		if _, ok := c.binaries[parts.Name(p.Name)]; ok {
			errs = append(errs, p.EndedByItself())
		}
	}
	return errors.Join(errs...)
}

// stopAll kills the processes. Nothing that they would still write is needed, and waiting
// for their leases or connections only costs time.
func stopAll(processes []*Process) error {
	var errs []error
	for _, p := range slices.Backward(processes) {
		errs = append(errs, p.Kill())
	}
	return errors.Join(errs...)
}

// Name returns the name in the options. It is empty for most control planes.
func (c *ControlPlane) Name() string { return c.options.Name }

// Kubeconfig returns the path of a kubeconfig file with all permissions.
func (c *ControlPlane) Kubeconfig() string { return c.kubeconfig }

// RESTConfig returns a client configuration with all permissions.
func (c *ControlPlane) RESTConfig() *rest.Config { return rest.CopyConfig(c.admin) }

// Dir returns a folder that Stop removes.
func (c *ControlPlane) Dir() string { return c.dir.path }

// Process returns the process of a name: the name of a part, or a name given to
// StartProcess. It returns nil when there is none.
func (c *ControlPlane) Process(name string) *Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.processes {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Part returns the process of a part. It returns nil if the options do not include the
// part.
func (c *ControlPlane) Part(name parts.Name) *Process { return c.Process(string(name)) }

// StartProcess starts a program of the caller like a part: it ends with this process or
// with Stop, and its log is next to the logs of the parts.
func (c *ControlPlane) StartProcess(name, path string, args, env []string) (*Process, error) {
	p := c.newProcess(name, path, args)
	p.Env = append([]string{c.reportRaces(name)}, env...)
	return p, p.Start(context.Background())
}

// process returns the process of a part. The part collects garbage rarely: garbage
// collection was a fifth of the API server's work, and no part lives long.
func (c *ControlPlane) process(name parts.Name, args ...string) *Process {
	p := c.newProcess(string(name), c.binaries[name], args)
	p.Env = append([]string{"GOGC=400"}, c.options.Env...)
	return p
}

func (c *ControlPlane) newProcess(name, path string, args []string) *Process {
	p := &Process{
		Name: name, Path: path, Args: args,
		LogFile: filepath.Join(c.logDir, fileName(label(c.options.Name, name))+".log"),
		plane:   c.options.Name,
		starter: c.starter,
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes = append(c.processes, p)
	return p
}

// inParallel runs all tasks concurrently and returns all their errors.
func inParallel(tasks ...func() error) error {
	errs := make([]error, len(tasks))
	var group sync.WaitGroup
	for i, task := range tasks {
		group.Go(func() { errs[i] = task() })
	}
	group.Wait()
	return errors.Join(errs...)
}
