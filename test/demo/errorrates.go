// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
)

const (
	usualErrors = 0.004
	badErrors   = 0.12
)

// errorRates is a small server with the error rates of what runs, and a Prometheus that
// scrapes it.
type errorRates struct {
	prometheus *controlplane.Prometheus
	dir        string
	// address is where the server will listen.
	address string
	server  *http.Server
	// bad is the version with the high error rate.
	bad atomic.Value
}

// startPrometheus starts the Prometheus. Its target comes when something runs.
func (d *demo) startPrometheus(ctx context.Context) error {
	return d.during("Starting Prometheus", func() (err error) {
		rates := &errorRates{}
		if rates.address, err = controlplane.FreeAddress(); err != nil {
			return err
		}
		if rates.dir, err = os.MkdirTemp("", "demo-prometheus-*"); err != nil {
			return err
		}
		d.rates = rates
		rates.prometheus, err = controlplane.StartPrometheus(ctx, rates.dir, map[string]string{"shop": rates.address})
		if err != nil {
			return errors.Join(err, rates.stop())
		}
		return nil
	})
}

// flags tell the controller where the Prometheus is.
func (e *errorRates) flags() []string {
	if e == nil {
		return nil
	}
	return []string{"--prometheus-address=" + e.prometheus.URL}
}

// serve makes the server answer with the error rates of the versions that Deployments run.
func (e *errorRates) serve(c client.Client) {
	e.server = &http.Server{Addr: e.address, ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var all appsv1.DeploymentList
		if err := c.List(r.Context(), &all); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		for i := range all.Items {
			fmt.Fprintln(w, errorRateOf(&all.Items[i], e.bad.Load()))
		}
	})}
	go func() { _ = e.server.ListenAndServe() }()
}

// errorRateOf returns the error rate of the version that a Deployment runs.
func errorRateOf(d *appsv1.Deployment, bad any) string {
	_, version, _ := strings.Cut(imageOf(d), ":")
	rate := usualErrors
	if version == bad {
		rate = badErrors
	}
	return fmt.Sprintf("error_rate{namespace=%q,version=%q} %g", d.Namespace, version, rate)
}

func (e *errorRates) stop() error {
	var errs []error
	if e.prometheus != nil {
		errs = append(errs, e.prometheus.Stop())
	}
	if e.server != nil {
		errs = append(errs, e.server.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(e.dir))...)
}
