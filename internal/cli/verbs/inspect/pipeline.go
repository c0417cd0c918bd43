// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/pipeline"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
)

// PipelineList is the answer of the verb pipeline.
type PipelineList struct {
	metav1.TypeMeta `json:",inline"`
	// Items are the applications, sorted by name.
	Items []pipeline.Pipeline `json:"items"`
	// Problems are what could not be read.
	Problems []string `json:"problems,omitempty"`
}

type piping struct {
	*program.Program
	out        *program.Output
	everywhere bool
}

// NewPipeline returns the verb pipeline.
func NewPipeline(p *program.Program) *cobra.Command {
	s := &piping{Program: p}
	cmd := &cobra.Command{
		Use: "pipeline [APPLICATION]", Short: "Show the environments of an application side by side",
		Long: `Show the environments of an application side by side, in the order in which a release
passes them: what runs there, how many releases it is behind the first one, the newest
release that the environments before have proven, and why the next one is not there yet.

Of an environment in another cluster, the row says what its report has said.

An application is the spec.name of its Environments. Without one, all applications with
an Environment in the namespace are shown, with their environments in other namespaces.`,
		Example: fmt.Sprintf(`  %[1]s pipeline shop
  # What is not in production yet, anywhere?
  %[1]s pipeline -A
  # For a script
  %[1]s pipeline shop -o 'jsonpath={.items[0].environments[*].runs.version}'`, p.Called),
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: p.CompleteApplications,
		RunE: func(cmd *cobra.Command, args []string) error { return s.run(cmd.Context(), strings.Join(args, "")) },
	}
	s.out = program.NewOutput(cmd, "wide")
	cmd.Flags().BoolVarP(&s.everywhere, "all-namespaces", "A", false, "show the applications of all namespaces")
	p.ReadsFiles(cmd.Flags())
	return cmd
}

func (s *piping) run(ctx context.Context, application string) error {
	answer, err := s.answer(ctx, application)
	switch {
	case err != nil:
		return err
	case len(answer.Items) == 0 && application != "":
		return fmt.Errorf("no Environment here is of an application %s; see: %s", application, s.CommandHere("pipeline"))
	case s.out.Is("name"):
		s.names(answer)
		return nil
	case !s.out.IsText():
		return s.out.Print(s.Program, answer)
	case len(answer.Items) == 0:
		s.Err.Line("no Environments found")
	default:
		s.table(answer).Write(s.Program.Out)
	}
	for _, problem := range answer.Problems {
		s.Err.Sentence(show.Warns, "%s", problem)
	}
	return nil
}

func (s *piping) answer(ctx context.Context, application string) (PipelineList, error) {
	namespace, err := s.Namespace()
	if err != nil {
		return PipelineList{}, err
	}
	if s.everywhere {
		namespace = ""
	}
	from, err := reader(ctx, s.Program, namespace)
	if err != nil {
		return PipelineList{}, err
	}
	return pipelines(ctx, from, []string{namespace}, application)
}

// pipelines returns the applications of some namespaces, or that application alone. An empty
// name is that of all namespaces.
func pipelines(ctx context.Context, from client.Reader, namespaces []string, application string) (PipelineList, error) {
	answer := PipelineList{TypeMeta: program.AnswerKind("PipelineList"), Items: []pipeline.Pipeline{}}
	r := &pipelineReader{from: from, application: application}
	if err := r.readAll(ctx, namespaces...); err != nil {
		return answer, err
	}
	for _, p := range pipeline.Of(r.facts) {
		if slices.Contains(namespaces, "") || slices.ContainsFunc(namespaces, p.In) {
			answer.Items = append(answer.Items, p)
		}
	}
	answer.Problems = r.problems
	return answer, nil
}

// reader returns what objects are read from: the cluster, or files.
func reader(ctx context.Context, p *program.Program, namespace string) (client.Reader, error) {
	if len(p.Files) > 0 {
		facts, _, err := p.Facts(ctx, namespace)
		return facts, err
	}
	c, err := p.Connect(ctx)
	return c.Client, err
}

func (s *piping) names(answer PipelineList) {
	for _, p := range answer.Items {
		for _, e := range p.Environments {
			if e.Object != "" {
				s.Program.Out.Line("environment.%s/%s", environmentsv1.GroupVersion.Group, e.Object)
			}
		}
	}
}

func (s *piping) table(answer PipelineList) show.Table {
	table := show.Table{Header: []string{"APPLICATION", "ENVIRONMENT", "ROLLOUT", "VERSION", "STATE", "SINCE", "BEHIND", "PROVEN", "NEXT", "WAITS FOR"}}
	if s.out.Is("wide") {
		table.Header = slices.Insert(table.Header, 2, "AFTER")
	}
	for _, p := range answer.Items {
		for _, e := range p.Environments {
			table.Rows = append(table.Rows, s.row(p.Application, e))
		}
	}
	return table
}

func (s *piping) row(application string, e pipeline.Environment) []string {
	version, since := "-", "-"
	if e.Runs != nil {
		version, since = e.Runs.Version, show.Ago(e.Runs.Since.Time, s.Now())
	}
	waits := s.waits(e)
	row := []string{
		application, program.OrDash(&e.Environment), e.Namespace + "/" + e.Rollout, version, stateIn(e), since, behindOf(e),
		program.OrDash(&e.Proven), program.OrDash(&e.Next), program.OrDash(&waits),
	}
	if s.out.Is("wide") {
		row = slices.Insert(row, 2, upstreamsOf(e))
	}
	return row
}

// waits says what an environment waits for. Of one in another cluster, only its report is
// known: since when this is what it says.
func (s *piping) waits(e pipeline.Environment) string {
	switch {
	case e.Cluster == "":
		return e.Waits()
	case len(e.Problems) > 0:
		return "in cluster " + e.Cluster + ": " + e.Problems[0]
	case e.Verified == nil:
		return "in cluster " + e.Cluster
	}
	return "in cluster " + e.Cluster + ", verified " + show.Ago(e.Verified.Time, s.Now()) + " ago"
}

func stateIn(e pipeline.Environment) string {
	switch {
	case e.Suspended:
		return "Suspended"
	case e.Runs == nil:
		return "-"
	case e.Runs.Unhealthy != "":
		return "Unhealthy"
	case e.Runs.State == v1alpha1.BakeInProgress:
		return "Baking"
	}
	return string(e.Runs.State)
}

// behindOf returns how far an environment is behind the first one, which has none before.
func behindOf(e pipeline.Environment) string {
	switch {
	case len(e.Upstreams) == 0 || e.Behind == nil:
		return "-"
	case *e.Behind < 0:
		return fmt.Sprintf("%d ahead", -*e.Behind)
	}
	return fmt.Sprint(*e.Behind)
}

func upstreamsOf(e pipeline.Environment) string {
	var all []string
	for _, u := range e.Upstreams {
		if u.Cluster != "" {
			u.Environment += " of " + u.Cluster
		}
		if u.Type == environmentsv1.Parallel {
			u.Environment += " (Parallel)"
		}
		all = append(all, u.Environment)
	}
	if len(all) == 0 {
		return "-"
	}
	return strings.Join(all, ", ")
}

// pipelineReader reads Environments of one application, or of all, and their Rollouts.
type pipelineReader struct {
	from        client.Reader
	application string
	facts       pipeline.Facts
	problems    []string
}

// readAll reads what belongs to the applications of some namespaces; of all of them if the
// name is empty. It fails only if no Environments of these can be read.
func (r *pipelineReader) readAll(ctx context.Context, namespaces ...string) error {
	r.facts = pipeline.Facts{Unreadable: map[string]string{}}
	read, err := r.readEach(ctx, namespaces)
	if err != nil || read[""] {
		return err
	}
	if r.admitsOthers() {
		whole := &pipelineReader{from: r.from, application: r.application}
		err := whole.readAll(ctx, "")
		if err == nil {
			r.facts = whole.facts
			return nil
		}
		r.problems = append(r.problems, fmt.Sprintf("environments of other namespaces that come after these are not shown: %v", err))
	}
	for next := r.unread(read); next != ""; next = r.unread(read) {
		read[next] = true
		if err := r.read(ctx, next); err != nil {
			r.facts.Unreadable[next] = err.Error()
		}
	}
	return nil
}

// readEach reads some namespaces, and returns which. What cannot be read is an error if it is
// all, and else a problem.
func (r *pipelineReader) readEach(ctx context.Context, namespaces []string) (map[string]bool, error) {
	read := map[string]bool{}
	var errs []error
	for _, namespace := range namespaces {
		read[namespace] = true
		if err := r.read(ctx, namespace); err != nil {
			errs = append(errs, err)
			r.facts.Unreadable[namespace] = err.Error()
		}
	}
	if len(errs) > 0 && len(errs) == len(namespaces) {
		return read, errs[0]
	}
	for _, err := range errs {
		r.problems = append(r.problems, err.Error())
	}
	return read, nil
}

// admitsOthers reports whether Environments of other namespaces may come after one that was
// read.
func (r *pipelineReader) admitsOthers() bool {
	return slices.ContainsFunc(r.facts.Environments, func(e environmentsv1.Environment) bool { return e.Spec.AccessFrom != nil })
}

// unread returns a namespace of upstreams that was not read yet; empty if there is none.
func (r *pipelineReader) unread(read map[string]bool) string {
	for i := range r.facts.Environments {
		for _, u := range r.facts.Environments[i].GetUpstreams() {
			if !u.IsRemote() && !read[u.Namespace] {
				return u.Namespace
			}
		}
	}
	return ""
}

// read reads the Environments and the Rollouts of a namespace. Rollouts that cannot be read
// are noted.
func (r *pipelineReader) read(ctx context.Context, namespace string) error {
	before := len(r.facts.Environments)
	err := program.EachPage(ctx, r.from, namespace, func(page *environmentsv1.EnvironmentList) {
		for _, e := range page.Items {
			if r.application == "" || e.Spec.Name == r.application {
				r.facts.Environments = append(r.facts.Environments, e)
			}
		}
	})
	if err != nil {
		return environmentsUnread(err)
	}
	err = program.EachPage(ctx, r.from, namespace, func(page *v1alpha1.RolloutList) { r.facts.Rollouts = append(r.facts.Rollouts, page.Items...) })
	if err != nil {
		for _, e := range r.facts.Environments[before:] {
			r.facts.Unreadable[e.Namespace] = fmt.Sprintf("its Rollout cannot be read: %v", err)
		}
	}
	return nil
}

// environmentsUnread says why Environments could not be read.
func environmentsUnread(err error) error {
	if program.IsMissing(err) {
		return errors.New("the API server serves no Environments: install the CustomResourceDefinition environments." + environmentsv1.GroupVersion.Group)
	}
	return fmt.Errorf("list Environments: %w", err)
}
