// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Names of the controllers in --controllers, logs and metrics.
const (
	rolloutController         = "rollout"
	scheduleController        = "rolloutschedule"
	clusterScheduleController = "clusterrolloutschedule"
	healthCheckController     = "healthcheck"
	environmentController     = "environment"
	quarantineController      = "quarantine"
	clusterGateController     = "clusterrolloutgate"
	coordinationController    = "deploymentcoordination"
	statefulSetController     = "statefulsetrollout"
)

// releaseControllers promote releases. They need Flux, and act for all namespaces or by
// label. newerControllers join them where their kinds are served: an older installation may
// lack the CRDs. coordinators order the steps within a release. They need neither, and must
// see a whole namespace.
var (
	releaseControllers = []string{rolloutController, scheduleController, clusterScheduleController, healthCheckController}
	newerControllers   = []string{environmentController, quarantineController, clusterGateController}
	coordinators       = []string{coordinationController, statefulSetController}
)

// controllers returns the names of all controllers.
func controllers() []string {
	return slices.Concat(releaseControllers, newerControllers, coordinators)
}

// byDefault stands for every controller that is not named.
const byDefault = "*"

// controllerList is the value of --controllers. The flag may be given more than once; the
// values are combined.
type controllerList []string

// String returns the list, separated by commas.
func (l *controllerList) String() string {
	if l == nil || len(*l) == 0 {
		return byDefault
	}
	return strings.Join(*l, ",")
}

// Set adds to the list.
func (l *controllerList) Set(value string) error {
	*l = append(*l, value)
	return nil
}

// choice contains the wanted controllers: the named ones, true for on and false for off,
// and the rest by default if there is an asterisk.
type choice struct {
	named map[string]bool
	rest  bool
}

// parseControllers parses a list in the format of kube-controller-manager: names
// separated by commas, "-name" for off, and * for all that are on by default.
func parseControllers(list string) (choice, error) {
	c := choice{named: map[string]bool{}}
	known := controllers()
	var errs []error
	for _, item := range strings.Split(list, ",") {
		item = strings.TrimSpace(item)
		name, off := strings.CutPrefix(item, "-")
		if item == byDefault {
			c.rest = true
			continue
		}
		if !slices.Contains(known, name) {
			errs = append(errs, fmt.Errorf("%q is not a controller: there are %s, and %s for all that are on by default",
				name, strings.Join(known, ", "), byDefault))
			continue
		}
		if on, twice := c.named[name]; twice && on == off {
			errs = append(errs, fmt.Errorf("%s is both on and off", name))
		}
		c.named[name] = !off
	}
	if len(errs) == 0 && !c.rest && !slices.Contains(slices.Collect(maps.Values(c.named)), true) {
		errs = append(errs, fmt.Errorf("no controller is on: name one, or begin with %s", byDefault))
	}
	return c, errors.Join(errs...)
}

// wants reports whether a controller is wanted, and whether it is wanted by name.
func (c choice) wants(name string) (wanted, byName bool) {
	on, named := c.named[name]
	return on || c.rest && !named, on
}

// leave removes controllers from those that are on by default.
func (c choice) leave(names ...string) {
	for _, name := range names {
		if _, named := c.named[name]; !named {
			c.named[name] = false
		}
	}
}

// promotes reports whether at least one release controller starts, or a newer one.
func promotes(starts map[string]bool) bool {
	return slices.ContainsFunc(slices.Concat(releaseControllers, newerControllers), func(name string) bool { return starts[name] })
}
