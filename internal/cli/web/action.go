// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Actions makes the changes that the user asks for, with the identity of the user.
type Actions interface {
	// Predict says what a change would do.
	Predict(ctx context.Context, of types.NamespacedName, a Action) (Prediction, error)
	// Send sends a change, if it still has the effect that was seen, or else returns [Another].
	// It returns what the API server has stored.
	Send(ctx context.Context, of types.NamespacedName, a Action, seen string) ([]string, error)
}

// Action is a change as it is typed on the command line: a verb, a name, flags.
type Action struct {
	Verb string `json:"verb"`
	// Name is that of a ReleaseQuarantine or a freeze; absent for the name of the Rollout.
	Name   string   `json:"name,omitempty"`
	Args   []string `json:"args,omitempty"`
	Reason string   `json:"reason,omitempty"`
}

// Offer is an action that the page offers.
type Offer struct {
	Action
	Title string `json:"title"`
	// Lacks is the right that the user does not have; absent if there is none.
	Lacks string `json:"lacks,omitempty"`
}

// Prediction says what a change would do, before it is sent.
type Prediction struct {
	// Effect are sentences, without times.
	Effect []string `json:"effect"`
	// Cautions say what is bad about the release that is chosen, and Notes what else to know.
	Cautions []string `json:"cautions,omitempty"`
	Notes    []string `json:"notes,omitempty"`
	// Promotes is true if a release goes out at once, or may do so.
	Promotes bool `json:"promotes,omitempty"`
	// Reason says whether the change has a reason.
	Reason ReasonUse `json:"reason"`
	// Command does the same in a terminal. A reason in it is empty.
	Command string `json:"command"`
	// Seen identifies what is shown.
	Seen string `json:"seen"`
}

// ReasonUse says whether a change has a reason.
type ReasonUse string

// A change has no place for a reason, may have one, or needs one.
const (
	ReasonNone     ReasonUse = "none"
	ReasonOptional ReasonUse = "optional"
	ReasonRequired ReasonUse = "required"
)

// Another is the effect of a change that is not the one that was seen.
type Another struct{ Now Prediction }

func (Another) Error() string { return "the effect is not the one that was shown" }

const (
	// keyHeader has what makes two requests one. Browsers may send a request again.
	keyHeader  = "Idempotency-Key"
	longestKey = 100
	// keptAnswers is how long the answer to a change is given again.
	keptAnswers = 10 * time.Minute
	// mostChanges and mostPredictions are how many may come in a minute.
	mostChanges     = 10
	mostPredictions = 60
)

func (s *Server) predict(w http.ResponseWriter, r *http.Request, v *Viewer) {
	var body Action
	of, ok := s.asked(w, r, &body, &v.predictions, mostPredictions)
	if !ok {
		return
	}
	prediction, err := v.Actions.Predict(r.Context(), of, body)
	code, object := outcome(prediction, err)
	answer(w, code, object)
}

// change sends what the user has seen. A client that goes away does not stop it half-way:
// it asks again with the same key.
func (s *Server) change(w http.ResponseWriter, r *http.Request, v *Viewer) {
	var body struct {
		Action
		Seen string `json:"seen"`
	}
	key := r.Header.Get(keyHeader)
	if key == "" || len(key) > longestKey {
		refuse(w, http.StatusBadRequest, "the header %s is missing, or longer than %d characters", keyHeader, longestKey)
		return
	}
	of, ok := s.asked(w, r, &body, &v.changes, mostChanges)
	if !ok {
		return
	}
	content, _ := json.Marshal([]any{of, body}) // it was JSON
	code, object := v.answers.once(key, string(content), s.Now, func() (int, any) {
		ctx, end := context.WithTimeout(context.WithoutCancel(r.Context()), longest)
		defer end()
		said, err := v.Actions.Send(ctx, of, body.Action, body.Seen)
		return outcome(map[string][]string{"said": said}, err)
	})
	answer(w, code, object)
}

// asked reads a request about a Rollout, as far as it is one and not one too many.
func (s *Server) asked(w http.ResponseWriter, r *http.Request, body any, count *perMinute, most int) (types.NamespacedName, bool) {
	of, is := rolloutOf(r)
	switch {
	case !is:
		refuse(w, http.StatusNotFound, "there is no such page")
	case !decode(w, r, body):
	case !count.admits(s.Now(), most):
		refuse(w, http.StatusTooManyRequests, "at most %d requests of this kind are answered in a minute", most)
	default:
		return of, true
	}
	return of, false
}

// outcome returns the answer to a prediction or a change. What the command line would refuse is
// no failure of the server.
func outcome(object any, err error) (int, any) {
	var another Another
	var lost *url.Error
	switch code, is := codeOf(err); {
	case err == nil:
		return http.StatusOK, object
	case errors.As(err, &another):
		return http.StatusConflict, another.Now
	case is:
		return code, failure(code, "%s", err)
	case errors.As(err, &lost), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return http.StatusBadGateway, failure(http.StatusBadGateway, "%s", err)
	}
	return http.StatusUnprocessableEntity, failure(http.StatusUnprocessableEntity, "%s", err)
}

// Seen returns what identifies the effect of an action. The reason is no part of it: it is
// written after the effect was read.
func (p Prediction) seen(a Action) string {
	content, _ := json.Marshal([]any{a.Verb, a.Name, a.Args, p.Effect, p.Cautions, p.Promotes}) // texts alone
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// As returns the prediction of an action with what identifies it.
func (p Prediction) As(a Action) Prediction {
	p.Seen, p.Reason = p.seen(a), cmp.Or(p.Reason, ReasonNone)
	return p
}
