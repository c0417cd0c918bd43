// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Source reads with the identity of the viewer. Answers are those of the command line.
type Source interface {
	// Me says who the viewer is, and which cluster this is.
	Me(ctx context.Context) (any, error)
	// Rollout explains a Rollout, with all that its release reaches.
	Rollout(ctx context.Context, key types.NamespacedName) (any, error)
	// Pipelines returns the environments of all applications.
	Pipelines(ctx context.Context) (any, error)
	// Incidents returns what went wrong with releases in the last day.
	Incidents(ctx context.Context) (any, error)
	// Calendar returns when schedules are open in the coming week.
	Calendar(ctx context.Context) (any, error)
}

// Viewer is who asks. Every handler but that of the list reaches the API server only through
// his source, whose client has his own credentials.
type Viewer struct {
	// Name is how the API server knows the viewer; empty if nobody asked.
	Name   string
	Source Source
	// Sight returns whose rows the viewer sees.
	Sight func(ctx context.Context) (Sight, error)
	// Actions makes the changes of the viewer, with his own credentials, too.
	Actions Actions

	streams              streams
	answers              answers
	changes, predictions perMinute
}

// Credentials are what a login is tried with: one of them.
type Credentials struct {
	Key   string `json:"key"`
	Token string `json:"token"`
}

// Authenticator knows who asks.
type Authenticator interface {
	// Login returns the answer for who has given the right credentials.
	Login(w http.ResponseWriter, r *http.Request, given Credentials, now time.Time) (any, error)
	// Viewer returns who has sent a request; an error says what somebody unknown must do.
	Viewer(r *http.Request, now time.Time) (*Viewer, error)
}
