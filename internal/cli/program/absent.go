// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/cli/snapshot"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// NoRollouts says that the API server does not serve Rollouts: it is another cluster than
// the user means, or the controller is not installed.
func (p *Program) NoRollouts() error {
	return fmt.Errorf("%s serves no Rollouts: is this the right cluster? See: %s", p.contextName(), p.CommandHere("doctor"))
}

// Explained returns an error in the words of [Program.NoRollouts] if that is the cause.
func (p *Program) Explained(err error) error {
	var noKind *meta.NoKindMatchError
	var status apierrors.APIStatus
	switch {
	case errors.Is(err, snapshot.ErrNoRollouts), errors.As(err, &noKind) && noKind.GroupKind == rolloutKind:
		return p.NoRollouts()
	case errors.As(err, &status) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		if about := status.Status().Details; apierrors.IsNotFound(err) && about.Group == rolloutKind.Group && about.Kind == "rollouts" {
			return p.NoRollouts()
		}
	}
	return err
}

var rolloutKind = v1alpha1.GroupVersion.WithKind(v1alpha1.RolloutKind).GroupKind()

// NoSuchRollout says which of some names no Rollout of a namespace has, and which ones there
// are.
func (p *Program) NoSuchRollout(ctx context.Context, from client.Reader, namespace string, names ...string) error {
	known, err := rolloutNames(ctx, from, namespace)
	if IsMissing(err) {
		return p.NoRollouts()
	}
	absent := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(known, name) })
	text := fmt.Sprintf("there is no Rollout %s in namespace %s", show.Words(absent, "or"), namespace)
	var meant []string
	for _, name := range absent {
		meant = append(meant, near(name, known)...)
	}
	switch {
	case err != nil: // the user may get Rollouts, and not list them
	case len(meant) > 0:
		text += ". Did you mean " + show.Words(slices.Compact(meant), "or") + "?"
	case len(known) > 0:
		text += "; there are " + truncate.List(known)
	case len(p.Files) > 0:
		text += p.inFiles(ctx, from)
	default:
		text += ", and no other one; choose another namespace with -n"
	}
	return errors.New(text)
}

// inFiles says which Rollouts files have in other namespaces.
func (p *Program) inFiles(ctx context.Context, from client.Reader) string {
	all, err := rolloutNames(ctx, from, "")
	if err != nil || len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("; the files have %s: choose the namespace with -n", truncate.List(all))
}

// rolloutNames returns the names of the Rollouts of a namespace; of all, with their
// namespaces, if it is empty.
func rolloutNames(ctx context.Context, from client.Reader, namespace string) ([]string, error) {
	var names []string
	err := EachPage(ctx, from, namespace, func(page *v1alpha1.RolloutList) {
		for i := range page.Items {
			name := page.Items[i].Name
			if namespace == "" {
				name = page.Items[i].Namespace + "/" + name
			}
			names = append(names, name)
		}
	})
	slices.Sort(names)
	return names, err
}

// mostTypos is in how many letters a name may differ from the one that is meant.
const mostTypos = 2

// near returns the names that may be meant: with a typing error, or with more before or
// after.
func near(name string, known []string) []string {
	var all []string
	for _, other := range known {
		part := min(len(name), len(other)) > mostTypos && (strings.Contains(other, name) || strings.Contains(name, other))
		if part || distance(name, other) <= min(mostTypos, len(name)-1, len(other)-1) {
			all = append(all, other)
		}
	}
	return all
}

// distance returns how many letters must be added, removed or replaced.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
