// SPDX-License-Identifier: Apache-2.0

// Package env provides the environment of the end-to-end tests: a control plane on
// which the controller runs, and for each test an application with a namespace and a
// repository of its own.
package env

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// Plane is a control plane with the project's kinds, on which the controller
// runs.
type Plane struct {
	*controlplane.ControlPlane
	// Controller is the process of the controller. It can be killed and started again.
	Controller *controlplane.Process
	// RefusalsAreMeant is true if the test takes rights from the controller.
	RefusalsAreMeant bool
	// Took is how long it took to start the control plane and the controller, without the
	// time to build programs.
	Took time.Duration

	program    string
	components []string
}

// Setting describes a control plane for tests.
type Setting struct {
	controlplane.Options
	// Components of config/components whose roles the controller has in addition to those
	// of config/default.
	Components []string
	// Args are the flags of the controller.
	Args []string
	// Env is the environment of the controller in addition to that of the shipped
	// Deployment.
	Env []string
	// Objects are created before the controller starts. They can be in its namespace.
	Objects []client.Object
	// Between, unless nil, puts a proxy between the controller and the API server. It
	// receives the path of the controller's kubeconfig, and returns the path of another
	// one.
	Between func(kubeconfig string) (string, error)
	// Instead, unless nil, returns the path of the program that is started instead of the
	// controller, whose path it receives. That program must become the controller.
	Instead func(controller string) (string, error)
}

// AsShipped contains the flags of the shipped Deployment that affect its behavior.
var AsShipped = []string{"--leader-elect"}

// Start builds missing programs, starts the control plane, and runs the controller with
// the given flags. The caller must stop the control plane.
func Start(ctx context.Context, options controlplane.Options, args ...string) (*Plane, error) {
	return Setting{Options: options, Args: args}.Start(ctx)
}

// beSilent discards the logs of libraries.
var beSilent = sync.OnceFunc(func() { ctrl.SetLogger(logr.Discard()) })

// Start builds missing programs, starts the control plane, and runs the controller. The
// caller must stop the control plane.
func (s Setting) Start(ctx context.Context) (*Plane, error) {
	beSilent()
	program, err := scenario.BuildController(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	if s.Instead != nil {
		if program, err = s.Instead(program); err != nil {
			return nil, err
		}
	}
	s.CRDPaths = append(s.CRDPaths, scenario.CRDs())
	if s.LogDir == "" {
		if s.LogDir, err = newLogDir(tested()); err != nil {
			return nil, err
		}
	}
	begun := time.Now()
	started, err := controlplane.Start(ctx, s.Options)
	if err != nil {
		return nil, err
	}
	plane := &Plane{ControlPlane: started, program: program, components: s.Components}
	if err := plane.runController(ctx, s); err != nil {
		return nil, errors.Join(err, plane.Stop())
	}
	plane.Took = time.Since(begun)
	return plane, nil
}

func (p *Plane) runController(ctx context.Context, s Setting) error {
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, environmentsv1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(p.Client().Scheme()); err != nil {
			return fmt.Errorf("register the project's kinds: %w", err)
		}
	}
	kubeconfig, err := scenario.Install(ctx, p.ControlPlane, scenario.Account, p.components...)
	if err == nil {
		err = p.createAll(ctx, s.Objects)
	}
	if err == nil && s.Between != nil {
		kubeconfig, err = s.Between(kubeconfig)
	}
	if err != nil {
		return err
	}
	p.Controller, err = p.StartAs(scenario.ControllerName, kubeconfig, s.Env, s.Args...)
	return err
}

func (p *Plane) createAll(ctx context.Context, objects []client.Object) error {
	for _, o := range objects {
		if err := p.Client().Create(ctx, o); err != nil {
			return fmt.Errorf("create %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

// StartAnother runs another controller under a name, with an account that has only the
// shipped rights.
func (p *Plane) StartAnother(ctx context.Context, name, account string, env []string, args ...string) (*controlplane.Process, error) {
	kubeconfig, err := scenario.Install(ctx, p.ControlPlane, account, p.components...)
	if err != nil {
		return nil, err
	}
	return p.StartAs(name, kubeconfig, env, args...)
}

// StartAs runs another controller under a name, with the account of a kubeconfig.
func (p *Plane) StartAs(name, kubeconfig string, env []string, args ...string) (*controlplane.Process, error) {
	return scenario.StartControllerAs(p.ControlPlane, name, p.program, kubeconfig, env, args...)
}

// End stops everything. It stops the controller as the kubelet does. It returns an error
// if the API server refused a request of the controller: the shipped roles must be enough
// for all tests.
func (p *Plane) End() error {
	err := p.Controller.Stop(context.Background())
	var refused error
	if !p.RefusalsAreMeant {
		refused = p.refused()
	}
	return errors.Join(err, refused, p.Stop())
}

func (p *Plane) refused() error {
	audited, err := p.Audited()
	if err != nil {
		return err
	}
	for _, request := range audited {
		if request.User == scenario.User(scenario.Account) && request.Code == http.StatusForbidden {
			return fmt.Errorf("the controller's roles do not let it %s", request)
		}
	}
	log, err := os.ReadFile(p.Controller.LogFile)
	if err != nil {
		return fmt.Errorf("read the controller's log: %w", err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "is forbidden: User") {
			return fmt.Errorf("the controller was refused something: %s", line)
		}
	}
	return nil
}

// Main starts a control plane that the tests of a package share, runs the tests and
// returns their exit code.
func Main(m *testing.M, shared **Plane, options controlplane.Options, args ...string) int {
	return Setting{Options: options, Args: args}.Main(m, shared)
}

// Main starts a control plane that the tests of a package share, runs the tests and
// returns their exit code.
func (s Setting) Main(m *testing.M, shared **Plane) int {
	return MainOf(m, Cluster{Setting: s, Plane: shared})
}

// WithoutController starts a control plane without a controller that the tests of a package share. It
// prepares the control plane, runs the tests and returns their exit code.
func WithoutController(m *testing.M, shared **controlplane.ControlPlane, options controlplane.Options, prepare func(context.Context) error) int {
	before := goleak.IgnoreCurrent()
	code, err := runWithoutController(m, shared, options, prepare)
	if err != nil {
		fmt.Fprintln(os.Stderr, "control plane:", err)
		return 1
	}
	return fixture.ExitCode(code, before)
}

func runWithoutController(m *testing.M, shared **controlplane.ControlPlane, options controlplane.Options, prepare func(context.Context) error) (code int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	beSilent()
	if options.LogDir, err = newLogDir(tested()); err != nil {
		return 1, err
	}
	if *shared, err = controlplane.Start(ctx, options); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, (*shared).Stop()) }()
	if err := prepare(ctx); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// StartFor starts a control plane for one test, and stops it afterwards.
func StartFor(t *testing.T, options controlplane.Options, args ...string) *Plane {
	t.Helper()
	return Setting{Options: options, Args: args}.For(t)
}

// For starts a control plane for one test, and stops it afterwards.
func (s Setting) For(t *testing.T) *Plane {
	t.Helper()
	var err error
	if s.LogDir, err = newLogDir(t.Name()); err != nil {
		t.Fatal(err)
	}
	plane, err := s.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.End(); err != nil {
			t.Error(err)
		}
	})
	return plane
}

// FreePort returns a loopback port on which nothing listens, and which no other test takes.
func FreePort(t *testing.T) string {
	t.Helper()
	port, err := controlplane.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}
