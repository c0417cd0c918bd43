// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/runtime/logger"
	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// sameFlags are pairs of flags with the same meaning: the name in Flux, or in another
// program whose flags are supported, and the name in the contract of this API.
var sameFlags = [][2]string{
	{"metrics-addr", "metrics-bind-address"},
	{"health-addr", "health-probe-bind-address"},
	{"enable-leader-election", "leader-elect"},
	{"webhook-cert-dir", "webhook-cert-path"},
	{"log.level", "log-level"},
	{"log.format", "log-encoding"},
}

// noOwnLogin is the flag whose default depends on another one.
const noOwnLogin = "no-own-registry-credentials"

// bindFlux adds the flags that every controller of Flux has. Most are Flux's own. A few
// are declared here, because Flux's package with them would bring a test library into the
// program.
func (o *options) bindFlux(flags *flag.FlagSet) {
	flags.String("metrics-addr", "0", "The same as --metrics-bind-address.")
	flags.String("health-addr", ":8081", "The same as --health-probe-bind-address.")
	flags.IntVar(&o.concurrent, "concurrent", 10, "How many objects of a kind are reconciled at a time. At most half are of one namespace, fewer if others are busy.")
	flags.Float64Var(&o.apiQPS, "kube-api-qps", 0, "The most requests per second to the API server for one kind of object; 0 leaves limits to the server's priority and fairness.")
	flags.IntVar(&o.apiBurst, "kube-api-burst", 300, "The most requests at once, with --kube-api-qps.")
	flags.DurationVar(&o.minRetryDelay, "min-retry-delay", firstRetry, "The delay before an object is tried again; it doubles with each failure.")
	flags.DurationVar(&o.maxRetryDelay, "max-retry-delay", lastRetry, "The longest such delay.")
	flags.BoolVar(&o.allNamespaces, "watch-all-namespaces", true, "Act in all namespaces; if false, only in that of "+runtimeNamespace+".")
	flags.StringVar(&o.labelSelector, "watch-label-selector", "", "Act for objects with matching labels only, such as sharding.fluxcd.io/key=shard1.")

	flags.BoolVar(&o.noOwnLogin, noOwnLogin, false,
		"Ask registries only with the credentials that an ImageRepository or Environment names, never with the controller's own (spec.provider, its Docker config). With --no-cross-namespace-refs, the default is true.")

	theirs := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, options := range []interface{ BindFlags(*pflag.FlagSet) }{&o.log, &o.election, &o.refs, &o.gates} {
		options.BindFlags(theirs)
	}
	theirs.VisitAll(func(f *pflag.Flag) { flags.Var(fluxValue{f.Value}, f.Name, f.Usage) })
}

// fluxValue adapts a flag of Flux to the standard library.
type fluxValue struct{ pflag.Value }

// String must also work for the zero value: the standard library calls it to decide
// whether a default is worth showing.
func (v fluxValue) String() string {
	if v.Value == nil {
		return ""
	}
	return v.Value.String()
}

// IsBoolFlag allows a flag without a value.
func (v fluxValue) IsBoolFlag() bool { return v.Type() == "bool" }

// mergeFlags gives flags with the same meaning the same value. Flags that contradict each
// other are an error.
func mergeFlags(flags *flag.FlagSet) error {
	var errs []error
	for _, pair := range sameFlags {
		errs = append(errs, mergePair(flags, pair[0], pair[1]), mergePair(flags, pair[1], pair[0]))
	}
	if zaps, logs := given(flags, "zap-"), append(given(flags, "log-"), given(flags, "log.")...); len(zaps) > 0 && len(logs) > 0 {
		errs = append(errs, fmt.Errorf("--%s and --%s both say how to log: give those that begin with --log, or those that begin with --zap",
			logs[0], zaps[0]))
	}
	return errors.Join(errs...)
}

func mergePair(flags *flag.FlagSet, from, to string) error {
	if !isGiven(flags, from) {
		return nil
	}
	value := meant(flags, from)
	if isGiven(flags, to) && meant(flags, to) != value {
		return fmt.Errorf("--%s=%s contradicts --%s=%s, which is another name of the same flag: give one of them",
			from, flags.Lookup(from).Value, to, flags.Lookup(to).Value)
	}
	return flags.Set(to, value)
}

// meant returns the value of a flag in this program's own terms.
func meant(flags *flag.FlagSet, name string) string {
	value := flags.Lookup(name).Value.String()
	if ours, theirs := theirWords[value]; theirs {
		return ours
	}
	return value
}

// isGiven reports whether the command line has a flag.
func isGiven(flags *flag.FlagSet, name string) bool {
	return slices.Contains(given(flags, name), name)
}

// given returns the flags with a prefix on the command line, sorted.
func given(flags *flag.FlagSet, prefix string) []string {
	var names []string
	flags.Visit(func(f *flag.Flag) {
		if strings.HasPrefix(f.Name, prefix) {
			names = append(names, f.Name)
		}
	})
	return names
}

// logger returns Flux's logger, unless a flag of zap is given.
func (o *options) logger(flags *flag.FlagSet) (logr.Logger, error) {
	if len(given(flags, "zap-")) > 0 {
		return zap.New(zap.UseFlagOptions(&o.zap)), nil
	}
	return logger.NewLogger(o.log), errors.Join(
		oneOf("log-level", o.log.LogLevel, "trace", "debug", "info", "error"),
		oneOf("log-encoding", o.log.LogEncoding, "json", "console"))
}

func oneOf(name, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("--%s=%s is none of %s", name, value, strings.Join(allowed, ", "))
}
