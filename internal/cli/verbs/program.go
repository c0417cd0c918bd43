// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"io"
	"strings"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"

	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
)

// program is one call of the command line.
type program struct {
	// called is what a user types to call it, such as "kubectl rollouts".
	called string
	// version is the version of the program.
	version string
	// in is where answers to questions are read; asks is true if somebody can answer.
	in   io.Reader
	asks bool
	// out gets the answer, and err what is said about it.
	out, err show.Printer
	// size is how large the terminal of out is now: 0 if it is not known.
	size func() (columns, rows int)
	// now and zone are the clock and the time zone of the user.
	now  func() time.Time
	zone *time.Location
	// kubeconfig is the only identity.
	kubeconfig *genericclioptions.ConfigFlags
	// connect opens the cluster that kubeconfig names.
	connect func(context.Context) (cluster, error)
	// files are read instead of a cluster, or over what it has.
	files []string
	// noCrossNamespaceRefs is the controller's flag of this name, which no object shows.
	noCrossNamespaceRefs bool
	// quarantineScope is the controller's flag of this name, which no object shows.
	quarantineScope quarantine.Scope
}

// requestTimeout is how long one request may take if the user gives no other limit.
const requestTimeout = "30s"

func newProgram(called string, streams genericiooptions.IOStreams) *program {
	p := &program{
		called: called, version: "dev", in: streams.In, out: show.Printer{Out: streams.Out}, err: show.Printer{Out: streams.ErrOut},
		now: realClock, zone: time.Local, kubeconfig: genericclioptions.NewConfigFlags(true),
		quarantineScope: quarantine.ScopeNamespace,
	}
	p.size = func() (columns, rows int) { return p.out.Width, 0 }
	p.kubeconfig.Timeout = ptr.To(requestTimeout)
	p.kubeconfig.CacheDir = nil // nothing is cached, so there is no flag for it
	p.connect = p.openCluster
	return p
}

// fail says what is wrong. What can be done about it is in the lines below the first.
func (p *program) fail(err error) {
	if err == nil {
		return
	}
	lines := strings.Split(strings.TrimSuffix(err.Error(), "\n"), "\n")
	p.err.Sentence(show.Bad, "%s", lines[0])
	for _, line := range lines[1:] {
		p.err.Line("    %s %s", p.err.Sign(show.Do), line)
	}
}
