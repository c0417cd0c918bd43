// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// quarantineAnswers are quarantines, as -o shows them.
type quarantineAnswers struct {
	metav1.TypeMeta `json:",inline"`
	Items           []Quarantine `json:"items"`
}

// Quarantine is one quarantine.
type Quarantine struct {
	Kind      string   `json:"kind"`
	Namespace string   `json:"namespace,omitempty"`
	Name      string   `json:"name"`
	Image     string   `json:"image,omitempty"`
	Tags      []string `json:"tags,omitempty"`
	Digest    string   `json:"digest,omitempty"`
	// Until is when it ends; nil if it does not end by itself.
	Until *metav1.Time `json:"until,omitempty"`
	// Over is true if it holds nothing any more.
	Over bool   `json:"over,omitempty"`
	Why  string `json:"why,omitempty"`
}

// ReleaseOf names the release of a quarantine: by its tags, or by its digest.
func ReleaseOf(spec *v1alpha1.ReleaseQuarantineSpec) string {
	if len(spec.Tags) > 0 {
		return truncate.List(spec.Tags)
	}
	return spec.Digest
}

// ListQuarantines lists the quarantines of the namespace or of all, and those of the cluster.
func ListQuarantines(ctx context.Context, p *program.Program, out *program.Output, everywhere bool) error {
	answers, err := quarantines(ctx, p, everywhere)
	switch {
	case err != nil:
		return err
	case out.Is("name"):
		for _, a := range answers.Items {
			p.Out.Line("%s.%s/%s", strings.ToLower(a.Kind), v1alpha1.GroupVersion.Group, a.Name)
		}
	case !out.IsText():
		return out.Print(p, answers)
	case len(answers.Items) == 0:
		p.Err.Line("no quarantines found")
	default:
		quarantineTable(p, answers, everywhere).Write(p.Out)
	}
	return nil
}

func quarantines(ctx context.Context, p *program.Program, everywhere bool) (quarantineAnswers, error) {
	answers := quarantineAnswers{TypeMeta: program.AnswerKind("QuarantineList"), Items: []Quarantine{}}
	namespace, err := p.Namespace()
	if err != nil {
		return answers, err
	}
	if everywhere {
		namespace = ""
	}
	c, err := p.Connect(ctx)
	if err != nil {
		return answers, err
	}
	inCluster, own := &v1alpha1.ClusterReleaseQuarantineList{}, &v1alpha1.ReleaseQuarantineList{}
	if err := c.Client.List(ctx, inCluster); apierrors.IsForbidden(err) {
		p.Err.Sentence(show.Warns, "quarantines of the whole cluster are not listed: %s", err)
	} else if err != nil {
		return answers, fmt.Errorf("list ClusterReleaseQuarantines: %w", err)
	}
	if err := c.Client.List(ctx, own, client.InNamespace(namespace)); err != nil {
		return answers, fmt.Errorf("list ReleaseQuarantines: %w", err)
	}
	for i := range inCluster.Items {
		q := &inCluster.Items[i]
		answers.Items = append(answers.Items, quarantineOf(v1alpha1.ClusterReleaseQuarantineKind, q, q.Spec.ReleaseQuarantineSpec, q.Status, p.Now()))
	}
	for i := range own.Items {
		q := &own.Items[i]
		status := quarantine.Counted(q.Status, quarantine.IsManaged(q), q.CreationTimestamp.Time)
		answers.Items = append(answers.Items, quarantineOf(v1alpha1.ReleaseQuarantineKind, q, q.Spec, status, p.Now()))
	}
	return answers, nil
}

func quarantineOf(kind string, o client.Object, spec v1alpha1.ReleaseQuarantineSpec, status v1alpha1.ReleaseQuarantineStatus, now time.Time) Quarantine {
	a := Quarantine{
		Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), Image: spec.Image, Tags: spec.Tags, Digest: spec.Digest,
		Over: quarantine.Phase(&spec, &status, now) != v1alpha1.QuarantineHeld, Why: spec.Reason,
	}
	if until := quarantine.Until(&spec, &status); !until.IsZero() && !a.Over {
		a.Until = &metav1.Time{Time: until}
	}
	return a
}

func quarantineTable(p *program.Program, answers quarantineAnswers, everywhere bool) show.Table {
	table := show.Table{Header: []string{"NAMESPACE", "KIND", "NAME", "RELEASE", "UNTIL", "WHY"}}
	for _, a := range answers.Items {
		until := "it is lifted"
		switch {
		case a.Over:
			until = "over"
		case a.Until != nil:
			until = show.Moment(a.Until.Time, p.Now(), p.Zone)
		}
		release := ReleaseOf(&v1alpha1.ReleaseQuarantineSpec{Tags: a.Tags, Digest: a.Digest})
		table.Rows = append(table.Rows, []string{program.OrDash(&a.Namespace), a.Kind, a.Name, release, until, a.Why})
	}
	if !everywhere {
		table.Header = table.Header[1:]
		for i, row := range table.Rows {
			table.Rows[i] = slices.Delete(row, 0, 1)
		}
	}
	return table
}
