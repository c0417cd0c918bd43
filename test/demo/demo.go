// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

const (
	bakeTime      = 8 * time.Second
	deployTimeout = time.Minute
)

// demo is one run of a script, from the start of the control plane to its removal.
type demo struct {
	*printer
	script
	once   bool
	logDir string

	// commandLine is the program that kubectl finds as a plugin.
	commandLine string
	plane       *controlplane.ControlPlane
	controller  *controlplane.Process
	leftBehind  error // what could not be removed
}

// play starts the control plane, runs the script and removes everything again, even if
// the script failed.
func (d *demo) play(ctx context.Context) error {
	silenceLogs()
	d.note("A rollout controller for Flux, seen at work: %s.", d.about)
	program, err := d.build(ctx)
	if err != nil {
		return err
	}
	if err := d.start(ctx, program); err != nil {
		return err
	}
	if err := os.Symlink(d.commandLine, d.plugin()); err != nil {
		return errors.Join(fmt.Errorf("install the command line: %w", err), d.clear())
	}
	err = d.perform(ctx)
	d.leftBehind = d.clear()
	return err
}

// silenceLogs hides the logs of the client libraries. The checks report the same
// problems.
func silenceLogs() {
	ctrl.SetLogger(logr.Discard())
	utilruntime.ErrorHandlers = nil
}

func (d *demo) build(ctx context.Context) (program string, err error) {
	err = d.during("Building the controller and the command line", func() (err error) {
		if d.commandLine, err = scenario.BuildCommandLine(ctx, d); err != nil {
			return err
		}
		program, err = scenario.BuildController(ctx, d)
		return err
	})
	return program, err
}

func (d *demo) start(ctx context.Context, program string) error {
	return d.during("Starting a control plane: etcd, the Kubernetes API, Flux, a registry", func() (err error) {
		d.plane, err = controlplane.Start(ctx, controlplane.Options{
			Workloads: true, Flux: true, ImageScanner: true,
			CRDPaths: append([]string{scenario.CRDs()}, d.crds...),
			Progress: d, LogDir: d.logDir,
		})
		if err != nil {
			return err
		}
		if err := d.install(ctx, program); err != nil {
			return errors.Join(err, d.plane.Stop())
		}
		return nil
	})
}

func (d *demo) install(ctx context.Context, program string) (err error) {
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, environmentsv1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(d.plane.Client().Scheme()); err != nil {
			return fmt.Errorf("register the project's kinds: %w", err)
		}
	}
	if slices.Contains(d.components, "deployment-coordination") {
		if err := scenario.InstallAdmission(ctx, d.plane); err != nil {
			return err
		}
	}
	d.controller, err = scenario.StartController(ctx, d.plane, program, d.components, d.args...)
	return err
}

// perform runs the script while the controller runs. Then it keeps everything running for
// the user, unless once is set.
func (d *demo) perform(ctx context.Context) error {
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		if err := d.controller.Wait(watched); watched.Err() == nil {
			cancel(fmt.Errorf("the controller ended: %w\n%s", err, lastWords(d.controller.LogFile)))
		}
	}()
	s, err := newSession(watched, d)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.playAll(watched); err != nil {
		return err
	}
	if !d.once {
		d.invitation()
		<-watched.Done()
		return context.Cause(watched)
	}
	return nil
}

// clear stops everything and makes sure that nothing is left.
func (d *demo) clear() error {
	before := leftovers(d.plane)
	if err := d.plane.Stop(); err != nil {
		return fmt.Errorf("stop the control plane: %w", err)
	}
	return before.gone()
}

// lastWords returns the end of a program's log, to report why the program ended too
// early.
func lastWords(file string) []byte {
	content, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return []byte(err.Error())
	}
	return content[max(0, len(content)-2000):]
}
