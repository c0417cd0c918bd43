// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/installation"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// Version is the answer of the verb version.
type Version struct {
	metav1.TypeMeta `json:",inline"`
	// Client is the version of this program.
	Client string `json:"client"`
	// Controllers are the instances of the controller in the cluster.
	Controllers []ControllerVersion `json:"controllers,omitempty"`
	// Definitions are the CustomResourceDefinitions in the cluster.
	Definitions *DefinitionsVersion `json:"definitions,omitempty"`
	// Incomplete says what could not be read, and why.
	Incomplete []string `json:"incomplete,omitempty"`
}

// ControllerVersion is an instance of the controller.
type ControllerVersion struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Version   string `json:"version"`
}

// DefinitionsVersion is what is known of the CustomResourceDefinitions.
type DefinitionsVersion struct {
	// Kinds is how many of those that this program knows are installed.
	Kinds int `json:"kinds"`
	// Different is how many of them have other fields than this program knows.
	Different int `json:"different"`
	// Releases are those whose charts have installed them.
	Releases []string `json:"releases,omitempty"`
}

// NewVersion returns the verb version.
func NewVersion(p *program.Program) *cobra.Command {
	var client bool
	var out *program.Output
	cmd := &cobra.Command{
		Use: "version", Short: "Say which version this is, and which one is in the cluster",
		Long: `Say which version this program is, which one the controller is and where it runs, and
whether the CustomResourceDefinitions have the fields that this program knows.

With --client it opens no connection.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !out.IsText() {
				return printVersion(cmd.Context(), p, out, client)
			}
			p.Out.Line("flux-rollout %s", p.Version)
			if client {
				return nil
			}
			return versionOfCluster(cmd.Context(), p)
		},
	}
	out = program.NewOutput(cmd)
	cmd.Flags().BoolVar(&client, "client", false, "only the version of this program, without a connection")
	return cmd
}

func printVersion(ctx context.Context, p *program.Program, out *program.Output, client bool) error {
	answer := Version{TypeMeta: program.AnswerKind("Version"), Client: p.Version}
	if !client {
		open, err := p.Connect(ctx)
		if err != nil {
			return err
		}
		if err := answer.add(readInstalled(ctx, open)); err != nil {
			return err
		}
	}
	return out.Print(p, answer)
}

// add adds what is in a cluster.
func (v *Version) add(found installed) error {
	for _, err := range []error{found.instancesErr, found.definitionsErr} {
		switch {
		case apierrors.IsForbidden(err):
			v.Incomplete = append(v.Incomplete, err.Error())
		case err != nil:
			return err
		}
	}
	for _, i := range found.instances {
		v.Controllers = append(v.Controllers, ControllerVersion{i.Namespace, i.Name, i.Version})
	}
	if found.definitionsErr == nil {
		v.Definitions = &DefinitionsVersion{Kinds: len(found.definitions), Different: len(found.differences()), Releases: releasesOf(found)}
	}
	return nil
}

func versionOfCluster(ctx context.Context, p *program.Program) error {
	open, err := p.Connect(ctx)
	if err != nil {
		return err
	}
	found := readInstalled(ctx, open)
	if err := sayController(p, found); err != nil {
		return err
	}
	return sayDefinitions(p, found)
}

func sayController(p *program.Program, found installed) error {
	switch {
	case apierrors.IsForbidden(found.instancesErr):
		p.Err.Sentence(show.Warns, "the version of the controller is not known: you may not list the Deployments of all namespaces")
	case found.instancesErr != nil:
		return fmt.Errorf("list the Deployments of the controller: %w", found.instancesErr)
	case len(found.instances) == 0:
		p.Out.Line("controller: there is no Deployment with the label %s=%s", installation.NameLabel, installation.PodLabels[installation.NameLabel])
	}
	for _, i := range found.instances {
		acts := ""
		if !i.Selector.Empty() {
			acts = ", acts for " + i.Selector.String()
		}
		p.Out.Line("controller %s in %s: Deployment %s, %d of %d ready%s", i.Version, i.Namespace, i.Name, i.Ready, i.Wanted, acts)
	}
	return nil
}

func sayDefinitions(p *program.Program, found installed) error {
	switch {
	case apierrors.IsForbidden(found.definitionsErr):
		p.Err.Sentence(show.Warns, "the CustomResourceDefinitions were not compared: you may not get them")
		return nil
	case found.definitionsErr != nil:
		return fmt.Errorf("read the CustomResourceDefinitions: %w", found.definitionsErr)
	case len(found.definitions) == 0:
		p.Out.Line("CRDs: none is installed")
		return nil
	}
	of := ""
	if releases := releasesOf(found); len(releases) > 0 {
		of = " of " + strings.Join(releases, ", ")
	}
	text := fmt.Sprintf("CRDs %s%s: ", v1alpha1.GroupVersion.Version, of)
	if different := found.differences(); len(different) > 0 {
		text += fmt.Sprintf("%s with other fields than this program knows; see: %s", verdict.Count(len(different), "kind"), p.CommandLine("", "doctor"))
	} else {
		text += fmt.Sprintf("%s, with the fields that this program knows", verdict.Count(len(found.definitions), "kind"))
	}
	p.Out.Line("%s", text)
	return nil
}

// releasesOf returns the releases whose charts have installed the definitions. Other ways
// to install them leave no version behind.
func releasesOf(found installed) []string {
	var all []string
	for i := range found.definitions {
		if release := found.definitions[i].Labels[installation.VersionLabel]; release != "" {
			all = append(all, release)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
