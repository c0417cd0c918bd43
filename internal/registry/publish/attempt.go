// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/internal/report"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// longestReason is how many characters of the reason for a failure are logged.
const longestReason = 1024

// outcome is how an attempt ended. Without a problem, the content is stored.
type outcome struct {
	// stored is what was stored, or found to be stored; nil if there was nothing to do.
	stored *environmentsv1.ReportStatus
	// requested is true if the registry was asked.
	requested bool
	// fetched is true if the place was read, and is not another cluster's. sequence is
	// the number of the own report there; 0 if there was none.
	fetched  bool
	sequence int64
	// manifest is the digest of what is in the place now; empty if it is not known.
	manifest string

	problem *verdict.Problem
	after   time.Duration // do not try again before that
	err     error         // what the log says
}

func (o outcome) reason() string { return truncate.Text(o.err.Error(), longestReason) }

// has returns the outcome with a problem.
func (o outcome) has(problem *verdict.Problem) outcome {
	o.problem, o.err = problem, errors.New(problem.Message)
	return o
}

// failed returns the outcome with an error.
func (o outcome) failed(what string, err error) outcome {
	var busy *registry.Busy
	if errors.As(err, &busy) {
		o.after = busy.After
	}
	o.err = err
	o.problem = &verdict.Problem{Reason: environmentsv1.PublishFailedReason, Message: what + ": " + registry.Cause(err) + advice(err)}
	return o
}

// advice returns what to do, where the cause does not say it.
func advice(err error) string {
	var answer *transport.Error
	switch {
	case errors.Is(err, registry.ErrNotFound):
		return ": create the repository, or correct spec.backend.project"
	case errors.As(err, &answer) && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden):
		return ": the login must have the right to push there; see spec.backend.secret"
	}
	return ""
}

// attempt stores what an Environment wants to be stored, unless that turns out to be what
// its status names.
func (p *Publisher) attempt(ctx context.Context, s *subject) outcome {
	uid, err := p.uid.get(ctx)
	if err != nil {
		return outcome{}.failed("the report cannot be published", err)
	}
	w := write{Publisher: p, content: s.wanted.content, unpublishable: s.wanted.unpublishable, reference: s.reference(), last: s.lastSequence()}
	w.content.ClusterUID = uid
	if s.published().Digest == w.content.Digest() {
		if !s.forced && !s.comparing {
			return outcome{}
		}
		w.known = s.left()
	}
	var problem *verdict.Problem
	w.key, problem, err = p.signer(ctx)
	switch {
	case err != nil:
		return outcome{}.failed("the report cannot be signed", err)
	case problem != nil:
		return outcome{}.has(problem)
	}
	w.place, err = p.place(ctx, p.environments, s.wanted.environment, s.repository, s.tag)
	if err != nil {
		return outcome{}.failed("the report cannot be published", err)
	}
	return w.do(ctx, s.hasLooked())
}

func (p *Publisher) signer(ctx context.Context) (report.SigningKey, *verdict.Problem, error) {
	if p.cluster == "" {
		return report.SigningKey{}, unsigned("the controller does not know the name of its cluster: start it with --cluster-name"), nil
	}
	return p.key(ctx)
}

// write is one write of a report.
type write struct {
	*Publisher
	content       report.Report
	unpublishable []error // what is left out of it
	key           report.SigningKey
	place         registry.Place
	reference     string
	last          int64 // the highest number before
	// known is the digest of the report that this process has left in the place, if that still
	// says what is wanted.
	known string
}

// do fetches what is in the place before the first write to it.
func (w write) do(ctx context.Context, seen bool) outcome {
	o := outcome{requested: true}
	if !seen {
		if o = w.fetch(ctx); o.problem != nil || o.stored != nil || o.manifest != "" && o.manifest == w.known {
			return o
		}
	}
	r := report.Dated(w.content, max(o.sequence, w.last), w.clock.Now())
	envelope, err := report.Sign(r, w.key)
	if err != nil {
		return o.has(&verdict.Problem{Reason: environmentsv1.PublishFailedReason, Message: "the report cannot be signed: " + err.Error()})
	}
	if o.manifest, err = w.push(ctx, w.place, envelope, ""); err != nil {
		o.manifest = ""
		return o.failed("the report cannot be stored in "+w.reference, err)
	}
	for _, why := range w.unpublishable {
		w.log.Info("a release is left out of a report", "report", w.reference, "reason", truncate.Text(why.Error(), longestReason))
	}
	o.stored = w.status(r)
	return o
}

// status returns what the status of the Environment says of a report with this content.
func (w write) status(r report.Report) *environmentsv1.ReportStatus {
	return &environmentsv1.ReportStatus{
		Reference: w.reference, Digest: w.content.Digest(), Sequence: r.Sequence, PublishedTime: &r.Created,
	}
}

// fetch reads the place of a report. If a process before this one has stored the content
// there, that is the outcome. What cannot be read as a report is overwritten.
func (w write) fetch(ctx context.Context) outcome {
	o := outcome{requested: true}
	found, err := w.pull(ctx, w.place, w.known)
	if err != nil && !errors.Is(err, registry.ErrNotFound) && !errors.Is(err, registry.ErrNotReport) {
		return o.failed("the report cannot be stored, because "+w.reference+" cannot be read", err)
	}
	o.fetched = true
	switch {
	case errors.Is(err, registry.ErrNotFound):
		return o
	case err == nil && w.known != "" && found.Digest == w.known:
		o.manifest = found.Digest
		return o
	}
	claim, refusal := report.Peek(found.Envelope)
	switch err = errors.Join(err, refusal); {
	case err != nil:
		w.log.Info("what is in the place of a report cannot be read, and is replaced",
			"report", w.reference, "reason", truncate.Text(err.Error(), longestReason))
	case isOfAnother(claim, w.content, w.replaces):
		o.fetched = false // it may be deleted
		return o.has(taken(w.reference, claim, w.content))
	}
	return w.compare(o, found, claim)
}

// compare takes over the number of the own report, and the report itself if it says the
// same. If it was signed with an earlier key, it is stored again with the present one.
func (w write) compare(o outcome, found registry.Stored, claim report.Claim) outcome {
	own, err := report.Verify(found.Envelope, w.key.Trusted(), report.Expected{Source: claim.Source})
	if err != nil {
		return o
	}
	o.sequence = own.Sequence
	if isSame(own, w.content) {
		o.stored, o.manifest = w.status(own), found.Digest
	}
	return o
}
