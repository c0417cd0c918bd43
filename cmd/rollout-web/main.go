// SPDX-License-Identifier: Apache-2.0

// Command rollout-web serves the page in a cluster, to users who log in with a token for the
// API server. What a user sees is read with that token. The program itself only lists and
// watches Rollouts, and changes nothing.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"
	_ "time/tzdata" // the image contains no time zones

	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/verbs/inspect"
	"github.com/fluxrollouts/rollout-controller/internal/cli/web"
)

// version is set when the program is built.
var version = "dev"

type options struct {
	publicURL, address, probes, certificate, key, cluster string
}

func (o *options) bind(flags *flag.FlagSet) {
	flags.StringVar(&o.publicURL, "public-url", "", "How browsers reach the page, as https://HOST or https://HOST:PORT. Requests for other hosts are refused.")
	flags.StringVar(&o.address, "bind-address", ":8443", "The address that the page is served at.")
	flags.StringVar(&o.probes, "health-probe-bind-address", ":8081", "The address of /healthz and /readyz.")
	flags.StringVar(&o.certificate, "tls-cert-file", "", "The certificate. Without one, what is in front of the program must end TLS.")
	flags.StringVar(&o.key, "tls-private-key-file", "", "The key of the certificate.")
	flags.StringVar(&o.cluster, "cluster-name", "this cluster", "What the page calls the cluster.")
}

func main() {
	var o options
	o.bind(flag.CommandLine)
	flag.Parse()
	p := program.New("kubectl rollouts", genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	p.Version = version
	if err := o.run(ctrl.SetupSignalHandler(), p); err != nil {
		p.Fail(err)
		os.Exit(1)
	}
}

func (o *options) run(ctx context.Context, p *program.Program) error {
	page := &inspect.ClusterPage{Program: p, Name: o.cluster}
	var err error
	if page.Public, err = url.Parse(o.publicURL); err != nil {
		return fmt.Errorf("--public-url: %w", err)
	}
	if page.Config, err = ctrl.GetConfig(); err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	if page.TLS, err = o.tls(ctx); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.address)
	if err != nil {
		return fmt.Errorf("--bind-address: %w", err)
	}
	board := web.NewBoard()
	if err := o.probe(ctx, board); err != nil {
		return err
	}
	p.Err.Line("rollout-web %s serves %s", version, o.publicURL)
	return page.Serve(ctx, listener, board)
}

// tls returns the certificate, which may be renewed at any time; nil if there is none.
func (o *options) tls(ctx context.Context) (*tls.Config, error) {
	if o.certificate == "" && o.key == "" {
		return nil, nil
	}
	files, err := certwatcher.New(o.certificate, o.key)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert-file, --tls-private-key-file: %w", err)
	}
	go func() { _ = files.Start(ctx) }() // it ends with the context
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: files.GetCertificate}, nil
}

// probe answers the kubelet. The program is ready once all Rollouts were read.
func (o *options) probe(ctx context.Context, board *web.Board) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.probes)
	if err != nil {
		return fmt.Errorf("--health-probe-bind-address: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !board.Reading().Complete {
			http.Error(w, "Rollouts are being read", http.StatusServiceUnavailable)
		}
	})
	server := &http.Server{Handler: mux, ReadTimeout: time.Second, WriteTimeout: time.Second, MaxHeaderBytes: 1 << 12}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, "probes are not answered any more:", err)
		}
	}()
	return nil
}
