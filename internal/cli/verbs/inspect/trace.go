// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxrollouts/rollout-controller/internal/cli/kinds"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/cli/tree"
)

// NewTrace returns the verb trace.
func NewTrace(p *program.Program) *cobra.Command {
	var out *program.Output
	cmd := &cobra.Command{
		Use: "trace KIND/NAME", Short: "Follow an object back to the release that it comes from",
		Example: fmt.Sprintf(`  %[1]s trace deployment/shop
  %[1]s trace deployment shop`, p.Called),
		Args: func(cmd *cobra.Command, args []string) error {
			if _, _, ok := traced(args); !ok {
				return fmt.Errorf("expected KIND/NAME after %q, got %s; see: %s --help", cmd.CommandPath(), program.Arguments(args), cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			names := slices.Collect(maps.Keys(shortNames))
			for _, kind := range kinds.All {
				names = append(names, strings.ToLower(kind.Kind))
			}
			slices.Sort(names)
			return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, _ := traced(args)
			return trace(cmd.Context(), p, out, kind, name)
		},
	}
	out = program.NewOutput(cmd)
	return cmd
}

// traced returns the kind and the name of an object: KIND/NAME, or KIND NAME as in kubectl.
func traced(args []string) (kind, name string, ok bool) {
	kind, name, ok = strings.Cut(strings.Join(args, "/"), "/")
	return kind, name, ok && len(args) <= 2 && kind != "" && name != "" && !strings.Contains(name, "/")
}

func trace(ctx context.Context, p *program.Program, out *program.Output, word, name string) error {
	namespace, err := p.Namespace()
	if err != nil {
		return err
	}
	c, err := p.Connect(ctx)
	if err != nil {
		return err
	}
	kind, err := kindNamed(c, word)
	if err != nil {
		return err
	}
	origin, err := tree.Trace(ctx, c.Client, kind, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no %s %s in namespace %s", kind.Kind, name, namespace)
	case err != nil:
		return err
	case !out.IsText():
		return out.Print(p, origin)
	}
	if err := show.Origin(p.Out.Out, origin, treeStyle(p, "")); err != nil {
		return err
	}
	for _, rollout := range origin.Rollouts() {
		p.Out.Line("what is next: %s", p.CommandLine(rollout.Namespace, "explain", rollout.Name))
	}
	return nil
}

// Names that need no question to the API server, as kubectl and flux have them.
var shortNames = map[string]schema.GroupVersionKind{
	"deploy":    appsv1.SchemeGroupVersion.WithKind("Deployment"),
	"sts":       appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
	"daemonset": appsv1.SchemeGroupVersion.WithKind("DaemonSet"), "ds": appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
	"pod": corev1.SchemeGroupVersion.WithKind("Pod"), "service": corev1.SchemeGroupVersion.WithKind("Service"),
	"ks": kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind), "hr": helmv2.GroupVersion.WithKind(helmv2.HelmReleaseKind),
}

// kindNamed returns the kind that a user names: in the singular or plural, or with its
// group.
func kindNamed(c program.Cluster, word string) (schema.GroupVersionKind, error) {
	word = strings.ToLower(word)
	if kind, ok := shortNames[word]; ok {
		return kind, nil
	}
	if kind, ok := kinds.Named(word); ok && c.Scheme.Recognizes(kind.GroupVersionKind) { // of image kinds, only the served version
		return kind.GroupVersionKind, nil
	}
	resource := schema.ParseGroupResource(word)
	kind, err := c.Mapper.KindFor(resource.WithVersion(""))
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("the API server knows no kind %q", word)
	}
	return kind, nil
}
