// SPDX-License-Identifier: Apache-2.0

// Package program is one call of the command line, and what all verbs share: the streams,
// the cluster, the view of a Rollout, the forms of an answer, and the exit codes.
package program

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"

	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
)

// Program is one call of the command line.
type Program struct {
	// Called is what a user types to call it, such as "kubectl rollouts".
	Called string
	// Version is the version of the program.
	Version string
	// In is where answers to questions are read; asks is true if somebody can answer.
	In   io.Reader
	Asks bool
	// Agrees takes the place of the question at a terminal: it gets the effect of a change, and
	// returns nil if the change is to be made.
	Agrees func(Effect) error
	// Out gets the answer, and err what is said about it.
	Out, Err show.Printer
	// Size is how large the terminal of out is now: 0 if it is not known.
	Size func() (columns, rows int)
	// Now and zone are the clock and the time zone of the user.
	Now  func() time.Time
	Zone *time.Location
	// Kubeconfig is the only identity.
	Kubeconfig *genericclioptions.ConfigFlags
	// namespace takes the place of the one of kubeconfig; empty if nothing does.
	namespace string
	// connection are the flags of kubeconfig, and which of them were given.
	connection *pflag.FlagSet
	// AnsweredFrom is the name of the cluster if somebody elsewhere asks, whose kubeconfig is
	// not known.
	AnsweredFrom string
	// Connect opens the cluster that kubeconfig names.
	Connect func(context.Context) (Cluster, error)
	// Files are read instead of a cluster, or over what it has.
	Files []string
	// offline is true once the answer comes from files alone, whose cluster is not known.
	offline bool
	// noCrossNamespaceRefs is the controller's flag of this name, which no object shows.
	noCrossNamespaceRefs bool
	// quarantineScope is the controller's flag of this name, which no object shows.
	quarantineScope quarantine.Scope
}

// requestTimeout is how long one request may take if the user gives no other limit.
const requestTimeout = "30s"

// New returns a call of the program as what the user types, with these streams.
func New(called string, streams genericiooptions.IOStreams) *Program {
	p := &Program{
		Called: called, Version: unversioned, In: streams.In, Out: show.Printer{Out: streams.Out}, Err: show.Printer{Out: streams.ErrOut},
		Now: realClock, Zone: time.Local, Kubeconfig: genericclioptions.NewConfigFlags(true),
		connection:      pflag.NewFlagSet("connection", pflag.ContinueOnError),
		quarantineScope: quarantine.ScopeNamespace,
	}
	p.Size = func() (columns, rows int) { return p.Out.Width, 0 }
	p.Kubeconfig.Timeout = ptr.To(requestTimeout)
	p.Kubeconfig.CacheDir = nil // nothing is cached, so there is no flag for it
	p.Connect = p.openCluster
	return p
}

// Within returns the same program for a namespace, with other streams, and nobody to ask.
func (p *Program) Within(namespace string, out, err show.Printer) *Program {
	within := *p
	within.namespace, within.Out, within.Err, within.Asks = namespace, out, err, false
	return &within
}

// Fail says what is wrong. What can be done about it is in the lines below the first.
func (p *Program) Fail(err error) {
	if err == nil {
		return
	}
	lines := strings.Split(strings.TrimSuffix(err.Error(), "\n"), "\n")
	p.Err.Sentence(show.Bad, "%s", lines[0])
	for _, line := range lines[1:] {
		p.Err.Line("    %s %s", p.Err.Sign(show.Do), line)
	}
}
