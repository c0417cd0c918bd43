// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func TestProfilesAreServedToThoseWhoMayReadThem(t *testing.T) {
	for name, tt := range map[string]struct {
		scheme string
		args   []string
		want   map[string]int
	}{
		"over plain HTTP to nobody": {
			scheme: "http", args: []string{"--metrics-secure=false", "--metrics-bind-address=:0"},
			want: map[string]int{"/metrics": 200, "/debug/pprof/": 404, "/debug/pprof/heap": 404, "/debug/pprof/goroutine": 404},
		},
		"over plain HTTP to those on this machine": {
			scheme: "http", args: []string{"--metrics-secure=false", "--metrics-bind-address=127.0.0.1:0"},
			want: map[string]int{"/metrics": 200, "/debug/pprof/": 200, "/debug/pprof/heap": 200, "/debug/pprof/goroutine": 200},
		},
		"over HTTPS to nobody without a name": {
			scheme: "https", args: []string{"--metrics-bind-address=127.0.0.1:0"},
			want: map[string]int{"/metrics": 401, "/debug/pprof/": 401, "/debug/pprof/heap": 401, "/debug/pprof/goroutine": 401},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, port, err := net.SplitHostPort(serveMetrics(t, tt.args...))
			if err != nil {
				t.Fatal(err)
			}
			url := tt.scheme + "://127.0.0.1:" + port
			got := map[string]int{}
			for path := range tt.want {
				got[path] = answerOf(t, url+path)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	}
}

// serveMetrics serves the metrics that the flags configure, and returns the address.
func serveMetrics(t *testing.T, args ...string) string {
	t.Helper()
	o, _, err := parse(t, "kuberik-system", args...)
	if err != nil {
		t.Fatal(err)
	}
	server, err := metricsserver.NewServer(o.metrics(), &rest.Config{}, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	bound := server.(interface{ GetBindAddr() string })
	for deadline := time.Now().Add(time.Minute); bound.GetBindAddr() == ""; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the server does not listen")
		}
	}
	return bound.GetBindAddr()
}

func answerOf(t *testing.T, url string) int {
	t.Helper()
	caller := http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true,
	}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := caller.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode
}
