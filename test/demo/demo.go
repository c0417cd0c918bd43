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
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	address     string // of the page that it serves
	cluster
	// otherCluster is where the other environment is: in this cluster, or in another one.
	otherCluster cluster
	registry     *controlplane.Registry // of both clusters, if there are two
	took         time.Duration          // to start them
	rates        *errorRates            // what HealthChecks measure, if they do
	leftBehind   error                  // what could not be removed
}

// cluster is a control plane with the controller on it.
type cluster struct {
	plane      *controlplane.ControlPlane
	controller *controlplane.Process
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
	if d.elsewhere != "" {
		return d.startBoth(ctx, program)
	}
	if d.measured {
		if err := d.startPrometheus(ctx); err != nil {
			return err
		}
	}
	return d.during("Starting a control plane: etcd, the Kubernetes API, Flux, a registry", func() (err error) {
		d.cluster, err = d.startCluster(ctx, program, controlplane.Options{}, nil, d.rates.flags()...)
		d.otherCluster = d.cluster
		return err
	})
}

// startCluster starts a control plane with the controller on it. The objects are created
// before the controller starts. The options say what is special.
func (d *demo) startCluster(ctx context.Context, program string, o controlplane.Options, objects []client.Object, args ...string) (c cluster, err error) {
	o.Workloads, o.Flux, o.ImageScanner = true, true, true
	o.CRDPaths = append([]string{scenario.CRDs()}, d.crds...)
	o.Progress, o.LogDir = d, d.logDir
	if c.plane, err = controlplane.Start(ctx, o); err != nil {
		return cluster{}, err
	}
	if c.controller, err = d.install(ctx, c.plane, program, objects, args); err != nil {
		return cluster{}, errors.Join(err, c.plane.Stop())
	}
	return c, nil
}

func (d *demo) install(ctx context.Context, plane *controlplane.ControlPlane, program string, objects []client.Object, args []string) (*controlplane.Process, error) {
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, environmentsv1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(plane.Client().Scheme()); err != nil {
			return nil, fmt.Errorf("register the project's kinds: %w", err)
		}
	}
	if err := scenario.InstallAdmission(ctx, plane, d.components...); err != nil {
		return nil, err
	}
	kubeconfig, err := scenario.Install(ctx, plane, scenario.Account, d.components...)
	if err != nil {
		return nil, err
	}
	if err := createIn(ctx, plane, objects...); err != nil {
		return nil, err
	}
	return scenario.StartControllerAs(plane, scenario.ControllerName, program, kubeconfig, nil, append(args, d.args...)...)
}

// perform runs the script while the controller runs. Then it keeps everything running for
// the user, unless once is set.
func (d *demo) perform(ctx context.Context) error {
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, c := range d.clusters() {
		go func() {
			if err := c.controller.Wait(watched); watched.Err() == nil {
				cancel(fmt.Errorf("the controller ended: %w\n%s", err, lastWords(c.controller.LogFile)))
			}
		}()
	}
	endPage, err := d.openPage(watched)
	defer endPage()
	if err != nil {
		return err
	}
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
	var errs []error
	for _, c := range d.clusters() {
		before := leftovers(c.plane)
		if err := c.plane.Stop(); err != nil {
			errs = append(errs, fmt.Errorf("stop the control plane: %w", err))
			continue
		}
		errs = append(errs, before.gone())
	}
	if d.registry != nil {
		errs = append(errs, d.registry.GoAway())
	}
	if d.rates != nil {
		errs = append(errs, d.rates.stop())
	}
	return errors.Join(errs...)
}

// clusters returns the clusters that were started.
func (d *demo) clusters() []cluster {
	started := slices.Compact([]cluster{d.cluster, d.otherCluster})
	return slices.DeleteFunc(started, func(c cluster) bool { return c.plane == nil })
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
