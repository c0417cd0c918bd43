// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/installation"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// NewVersion returns the verb version.
func NewVersion(p *program.Program) *cobra.Command {
	var client bool
	cmd := &cobra.Command{
		Use: "version", Short: "Say which version this is, and which one is in the cluster",
		Long: `Say which version this program is, which one the controller is and where it runs, and
whether the CustomResourceDefinitions have the fields that this program knows.

With --client it opens no connection.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p.Out.Line("flux-rollout %s", p.Version)
			if client {
				return nil
			}
			return versionOfCluster(cmd.Context(), p)
		},
	}
	cmd.Flags().BoolVar(&client, "client", false, "only the version of this program, without a connection")
	return cmd
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
	text := fmt.Sprintf("CRDs %s%s: ", v1alpha1.GroupVersion.Version, releasesOf(found))
	if different := found.differences(); len(different) > 0 {
		text += fmt.Sprintf("%s with other fields than this program knows; see: %s doctor", verdict.Count(len(different), "kind"), p.Called)
	} else {
		text += fmt.Sprintf("%s, with the fields that this program knows", verdict.Count(len(found.definitions), "kind"))
	}
	p.Out.Line("%s", text)
	return nil
}

// releasesOf returns the releases whose charts have installed the definitions. Other ways
// to install them leave no version behind.
func releasesOf(found installed) string {
	var all []string
	for i := range found.definitions {
		if release := found.definitions[i].Labels[installation.VersionLabel]; release != "" {
			all = append(all, release)
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) == 0 {
		return ""
	}
	return " of " + strings.Join(all, ", ")
}
