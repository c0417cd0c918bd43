// SPDX-License-Identifier: Apache-2.0

package create

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
)

type creatingRollout struct {
	*creating
	image, secret, policy, semver           string
	insecure                                bool
	repository, gitRepository               string
	kustomization, variable, release, value string
	bake, timeout, soak                     time.Duration
	rollback, digest                        bool
	application, environment, after         string
	access                                  []string
}

func newRollout(p *program.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "rollout NAME", Short: "Create a Rollout, and what is missing around it",
		Long: `Create a Rollout, and what is missing around it.

Releases come from an image (--image creates an ImageRepository and an ImagePolicy), or from
an ImagePolicy that exists. The Rollout writes them into one field: the tag of an
OCIRepository or a GitRepository, a variable of a Kustomization, or a value of a
HelmRelease. That object gets an annotation; if it comes from Git, the output is what to add
there. With --image, an OCIRepository that does not exist is created for that image, with a
Kustomization.

What exists is never overwritten. All is checked before anything is stored: by the rules of
"lint", by the decision that the controller would make, and by the API server. With
--export, the output is YAML for Git; with -f, what is in Git is read from files, and no
cluster is needed.

If Git sets the version today, the Rollout pins it and writes nothing, and the output has
the steps that hand the version over.`,
		Example: fmt.Sprintf(`  # An application from nothing
  %[1]s create rollout podinfo --image ghcr.io/stefanprodan/manifests/podinfo --semver 6.x --oci-repository podinfo --bake 10m
  # A variable of a Kustomization that exists
  %[1]s create rollout shop --image-policy shop --kustomization apps --variable SHOP_TAG --rollback
  # Production, two hours after staging, as YAML for Git
  %[1]s create rollout shop --image registry.example.com/shop --oci-repository shop --environment production --after shop-staging/staging --soak 2h --export`, p.Called),
	}
	r := &creatingRollout{creating: newCreating(p, cmd)}
	r.addFlags(cmd.Flags())
	cmd.Flags().StringArrayVarP(&p.Files, "filename", "f", nil, "with --export: the manifests in Git; no cluster is asked")
	complete(cmd, map[string]cobra.CompletionFunc{
		"image-policy": program.CompleteNames[imagev1.ImagePolicyList](p), "oci-repository": program.CompleteNames[sourcev1.OCIRepositoryList](p),
		"git-repository": program.CompleteNames[sourcev1.GitRepositoryList](p),
		"kustomization":  program.CompleteNames[kustomizev1.KustomizationList](p), "helm-release": program.CompleteNames[helmv2.HelmReleaseList](p),
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := r.check(); err != nil {
			return err
		}
		if err := r.addEnvironment(args[0]); err != nil {
			return err
		}
		return r.run(cmd.Context(), func(ctx context.Context, w *world) (*plan, error) { return r.plan(ctx, w, args[0]) })
	}
	return cmd
}

func (r *creatingRollout) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&r.image, "image", "", "the image whose tags are the releases: creates an ImageRepository and an ImagePolicy")
	flags.StringVar(&r.semver, "semver", ">=0.0.0", "with --image: the range of versions that may be promoted")
	flags.StringVar(&r.secret, "secret-ref", "", "with --image: the Secret with the login to the registry")
	flags.BoolVar(&r.insecure, "insecure", false, "with --image: the registry has no TLS")
	flags.StringVar(&r.policy, "image-policy", "", "the ImagePolicy that names the releases")
	flags.StringVar(&r.repository, "oci-repository", "", "write the tag of this OCIRepository")
	flags.StringVar(&r.gitRepository, "git-repository", "", "write the tag of this GitRepository, for pipelines that tag the image and the commit alike")
	flags.BoolVar(&r.digest, "digest", false, "with --oci-repository: write the digest of the release as well, so that only the content that was approved runs")
	flags.StringVar(&r.kustomization, "kustomization", "", "write a variable of this Kustomization")
	flags.StringVar(&r.variable, "variable", "", "with --kustomization: the name of the variable")
	flags.StringVar(&r.release, "helm-release", "", "write a value of this HelmRelease")
	flags.StringVar(&r.value, "value", "", "with --helm-release: the path of the value, such as image.tag")
	program.SpanVar(flags, &r.bake, "bake", 0, "how long a release must stay healthy before it has succeeded")
	program.SpanVar(flags, &r.timeout, "timeout", 15*time.Minute, "how long a release may take until it is applied and healthy")
	flags.BoolVar(&r.rollback, "rollback", false, "go back automatically to the last good release when one fails")
	flags.StringVar(&r.environment, "environment", "", "the name of this environment: creates an Environment; required with --after")
	flags.StringVar(&r.after, "after", "", "take only what this environment has proven: [NAMESPACE/]ENVIRONMENT")
	program.SpanVar(flags, &r.soak, "soak", 0, "with --after: how long a release must have been healthy there")
	flags.StringVar(&r.application, "application", "", "with --environment: the name of the application, the same in all environments (default: the name of the Rollout)")
	flags.StringSliceVar(&r.access, "access-from", nil, "with --environment: namespaces with environments that come after this one")
}

// check says what is wrong with the flags.
func (r *creatingRollout) check() error {
	switch {
	case (r.image == "") == (r.policy == ""):
		return errors.New("say where the releases come from: --image REPOSITORY, or --image-policy NAME; one of the two")
	case r.environment == "" && (r.after != "" || r.soak > 0 || len(r.access) > 0 || r.application != ""):
		return errors.New("say what this environment is called, with --environment NAME")
	case r.after == "" && r.soak > 0:
		return errors.New("--soak is about the environment before this one: name it, with --after")
	case strings.ContainsAny(path.Base(r.image), ":@"):
		return fmt.Errorf("--image %s: leave out the tag; --semver says which versions may be promoted", r.image)
	}
	if _, err := semver.NewConstraint(r.semver); err != nil {
		return fmt.Errorf("--semver %q: %w", r.semver, err)
	}
	return r.checkTarget()
}

func (r *creatingRollout) checkTarget() error {
	switch {
	case len(program.NonEmpty(r.repository, r.gitRepository, r.kustomization, r.release)) != 1:
		return errors.New("say what the Rollout writes: --oci-repository NAME, --git-repository NAME, --kustomization NAME --variable NAME, or --helm-release NAME --value PATH; one of them")
	case r.digest && r.repository == "":
		return errors.New("--digest goes with --oci-repository; for a variable or a value, see docs/guides/digests.md")
	case (r.kustomization == "") != (r.variable == ""):
		return errors.New("--kustomization and --variable go together")
	case (r.release == "") != (r.value == ""):
		return errors.New("--helm-release and --value go together")
	}
	return nil
}

// plan returns what is missing.
func (r *creatingRollout) plan(ctx context.Context, w *world, name string) (*plan, error) {
	if err := r.findUpstream(ctx, w); err != nil {
		return nil, err
	}
	rollout, p := r.rollout(w, name), &plan{asks: true}
	if err := r.addReleases(ctx, w, p, name); err != nil {
		return nil, err
	}
	t, err := r.target(ctx, w)
	if err != nil {
		return nil, err
	}
	if err := r.addTarget(ctx, w, p, t, rollout); err != nil {
		return nil, err
	}
	p.objects = append(append(p.objects, r.laid...), rollout)
	p.effect = func(ctx context.Context, after *world) (string, error) { return r.effect(ctx, after, p, rollout) }
	return p, nil
}

// rollout returns the Rollout.
func (r *creatingRollout) rollout(w *world, name string) *v1alpha1.Rollout {
	rollout := &v1alpha1.Rollout{Spec: v1alpha1.RolloutSpec{
		ReleasesImagePolicy: v1alpha1.LocalObjectReference{Name: cmp.Or(r.policy, name)}, TargetHealth: v1alpha1.TargetHealthRequired,
		BakeTime: duration(r.bake), DeployTimeout: duration(r.timeout),
	}}
	r.name(rollout, w.namespace, name)
	if r.rollback {
		rollout.Spec.Rollback = &v1alpha1.RolloutRollback{}
	}
	if r.environment != "" {
		rollout.Spec.EnvironmentRef = &v1alpha1.LocalObjectReference{Name: name}
	}
	return rollout
}

// duration returns the duration of a flag; nil if it is not given.
func duration(d time.Duration) *metav1.Duration {
	if d == 0 {
		return nil
	}
	return &metav1.Duration{Duration: d}
}

const (
	// scanInterval is how often Flux looks for new tags, and interval how often it looks
	// whether all is as it should be.
	scanInterval = 5 * time.Minute
	interval     = 10 * time.Minute
)

// addReleases adds what finds the releases.
func (r *creatingRollout) addReleases(ctx context.Context, w *world, p *plan, name string) error {
	if r.policy != "" {
		policy := &imagev1.ImagePolicy{}
		policy.Namespace, policy.Name = w.namespace, r.policy
		if err := w.Get(ctx, client.ObjectKeyFromObject(policy), policy); apierrors.IsNotFound(err) {
			return w.noSuch(ctx, policy)
		} else if err != nil {
			return fmt.Errorf("read ImagePolicy %s: %w", r.policy, err)
		}
		if policy.Spec.DigestReflectionPolicy != imagev1.ReflectAlways {
			r.Err.Sentence(show.Warns, "ImagePolicy %s does not show each digest: set spec.digestReflectionPolicy to Always, so that a tag that is pushed again is seen", r.policy)
		}
		return nil
	}
	repository := &imagev1.ImageRepository{Spec: imagev1.ImageRepositorySpec{
		Image: strings.TrimPrefix(r.image, "oci://"), Interval: metav1.Duration{Duration: scanInterval}, SecretRef: r.login(), Insecure: r.insecure,
	}}
	policy := &imagev1.ImagePolicy{Spec: imagev1.ImagePolicySpec{
		ImageRepositoryRef: fluxmeta.NamespacedObjectReference{Name: name},
		Policy:             imagev1.ImagePolicyChoice{SemVer: &imagev1.SemVerPolicy{Range: r.semver}},
		// A tag that is pushed again is seen, and environments recognize releases.
		DigestReflectionPolicy: imagev1.ReflectAlways, Interval: &metav1.Duration{Duration: interval},
	}}
	for _, object := range []client.Object{repository, policy} {
		r.name(object, w.namespace, name)
		p.objects = append(p.objects, object)
	}
	return nil
}

func (r *creatingRollout) login() *fluxmeta.LocalObjectReference {
	if r.secret == "" {
		return nil
	}
	return &fluxmeta.LocalObjectReference{Name: r.secret}
}

// addTarget adds the target, or what it needs so that the Rollout writes it.
func (r *creatingRollout) addTarget(ctx context.Context, w *world, p *plan, t *target, rollout *v1alpha1.Rollout) error {
	if t.object == nil {
		r.addSource(w, p, t, rollout.Name)
		p.next = []string{t.gitLeavesOut(sourcev1.OCIRepositoryKind, r.repository), r.see(w, rollout.Name)}
		return nil
	}
	if other := t.writer(); other != "" && other != rollout.Name {
		return program.Refuse("%s is written by Rollout %s already: %s", t, other, t.annotation)
	}
	p.annotated = t.annotated(rollout.Name)
	if t.writer() == "" {
		if t.current() != "" {
			rollout.Spec.FirstRelease = v1alpha1.FirstReleaseApplied
		}
		automated := w.automationOf(ctx, rollout.Spec.ReleasesImagePolicy.Name)
		if t.isSetByGit(w, r.export) || t.isSetBelow(w, automated) {
			r.handOver(w, p, t, automated, rollout)
			return nil
		}
	}
	r.annotate(w, p, t, rollout.Name)
	return nil
}

// addSource adds an OCIRepository that pulls nothing before the first promotion, and a
// Kustomization that applies it.
func (r *creatingRollout) addSource(w *world, p *plan, t *target, rollout string) {
	source := &sourcev1.OCIRepository{Spec: sourcev1.OCIRepositorySpec{
		URL: "oci://" + strings.TrimPrefix(r.image, "oci://"), Interval: metav1.Duration{Duration: interval},
		Reference: &sourcev1.OCIRepositoryRef{Tag: placeholder}, SecretRef: r.login(), Insecure: r.insecure,
	}}
	consumer := &kustomizev1.Kustomization{Spec: kustomizev1.KustomizationSpec{
		Interval: metav1.Duration{Duration: interval}, Path: "./", Prune: true, TargetNamespace: w.namespace,
		SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.OCIRepositoryKind, Name: r.repository},
	}}
	r.name(source, w.namespace, r.repository)
	source.Annotations = merged(t.annotations(rollout), map[string]string{applyOnce: applyOnceValue})
	r.name(consumer, w.namespace, r.repository)
	p.objects = append(p.objects, source, consumer)
}

// handOver makes the Rollout pin the version that runs, and adds the steps.
func (r *creatingRollout) handOver(w *world, p *plan, t *target, a automation, rollout *v1alpha1.Rollout) {
	version := t.running(a)
	rollout.Spec.FirstRelease, rollout.Spec.WantedVersion = v1alpha1.FirstReleaseApplied, &version
	p.asks = false
	p.next = t.handover(a, rollout.Name, version, r.CommandLine(w.namespace, "unpin", rollout.Name), r.CommandLine(w.namespace, "status", rollout.Name))
}

// annotate gives the field to the Rollout: in the cluster, in Git, or in both.
func (r *creatingRollout) annotate(w *world, p *plan, t *target, rollout string) {
	if r.value != "" && t.current() == "" {
		r.Err.Sentence(show.Warns, "spec.values of %s has no %s now: if its chart does not have this value either, releases have no effect", t, r.value)
	}
	p.next = []string{t.gitLeavesOut(t.GetKind(), t.GetName()), r.see(w, rollout)}
	only := t.only(map[string]any{}, t.annotations(rollout))
	parent, once := program.ParentOf(t.object), t.GetAnnotations()[applyOnce] == applyOnceValue
	switch {
	case r.export:
		p.git = []manifest{t.forGit(rollout)}
		if w.files == nil && t.isRepository() && t.writer() == "" {
			p.next = append(p.next, fmt.Sprintf("Flux leaves %s alone, because it exists: to annotate it, run the same without --export, too", t))
		}
	case maps.Equal(p.annotated.GetAnnotations(), t.GetAnnotations()): // it is annotated
	case parent != "" && !once:
		p.git = []manifest{only}
		p.next = append([]string{fmt.Sprintf("%s comes from Git, by %s: add the annotation of the output to its manifest there; until then, nothing changes", t, parent)}, p.next...)
	default:
		p.annotation = &only
	}
}

func (r *creatingRollout) see(w *world, rollout string) string {
	return "see: " + r.CommandLine(w.namespace, "status", rollout)
}

// addEnvironment adds the Environment, if there is to be one.
func (r *creatingRollout) addEnvironment(name string) error {
	if r.environment == "" {
		return nil
	}
	namespace, err := r.Namespace()
	if err != nil {
		return err
	}
	e := &environmentsv1.Environment{Spec: environmentsv1.EnvironmentSpec{
		RolloutRef: v1alpha1.LocalObjectReference{Name: name}, Name: cmp.Or(r.application, name), Environment: r.environment,
		Backend: environmentsv1.Backend{Type: environmentsv1.BackendCluster},
	}}
	r.name(e, namespace, name)
	for _, other := range r.access {
		if e.Spec.AccessFrom == nil {
			e.Spec.AccessFrom = &v1alpha1.AccessFrom{}
		}
		selector := v1alpha1.NamespaceSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: other}}
		e.Spec.AccessFrom.NamespaceSelectors = append(e.Spec.AccessFrom.NamespaceSelectors, selector)
	}
	if r.after != "" {
		upstream := environmentsv1.Upstream{Environment: path.Base(r.after), SoakTime: duration(r.soak)}
		upstream.Namespace, _, _ = strings.Cut(strings.TrimSuffix(r.after, upstream.Environment), "/")
		e.Spec.Upstreams = append(e.Spec.Upstreams, upstream)
	}
	r.laid = []client.Object{e}
	return nil
}

// findUpstream adds the name of the Rollout of the environment before this one, if it is
// another one.
func (r *creatingRollout) findUpstream(ctx context.Context, w *world) error {
	if r.after == "" {
		return nil
	}
	own := r.laid[0].(*environmentsv1.Environment)
	upstream := &own.Spec.Upstreams[0]
	list := &environmentsv1.EnvironmentList{}
	if err := w.facts.List(ctx, list, client.InNamespace(cmp.Or(upstream.Namespace, w.namespace))); err != nil {
		return fmt.Errorf("list Environments: %w", err)
	}
	for i := range list.Items {
		other := &list.Items[i].Spec
		if other.Name == own.Spec.Name && other.Environment == upstream.Environment && other.RolloutRef.Name != own.Name {
			upstream.Rollout = other.RolloutRef.Name
		}
	}
	return nil
}

// effect says what the Rollout does at once.
func (r *creatingRollout) effect(ctx context.Context, after *world, p *plan, rollout *v1alpha1.Rollout) (string, error) {
	switch {
	case rollout.Spec.WantedVersion != nil:
		return fmt.Sprintf("Rollout %s pins %s, and writes nothing", rollout.Name, *rollout.Spec.WantedVersion), nil
	case r.policy != "" || !slices.Contains(p.objects, client.Object(rollout)): // or it is there already
		return r.decision(ctx, after, rollout.Name)
	case rollout.Spec.FirstRelease == v1alpha1.FirstReleaseApplied:
		return "the history begins with the version that runs; then the newest release that nothing holds goes out", nil
	case rollout.Spec.EnvironmentRef != nil && r.after != "":
		return fmt.Sprintf("the first release of %s goes out once %s has proven it", r.image, r.after), nil
	}
	return fmt.Sprintf("Flux looks for releases of %s in the range %s; the newest one goes out at once, past gates and schedules: it is the first one", r.image, r.semver), nil
}

// decision says what the controller would decide.
func (c *creating) decision(ctx context.Context, after *world, name string) (string, error) {
	v, err := c.ViewIn(ctx, after.facts, client.ObjectKey{Namespace: after.namespace, Name: name}, c.Now())
	if err != nil {
		return "", err
	}
	d := v.Visible
	switch {
	case v.Unread.Any() && (!v.Unread.OnlyHold() || d.Action.Promotes()):
		return fmt.Sprintf("what goes out is not known: you may not read %s", v.Unread), nil
	case v.Err != nil:
		return "what happens is not known: " + strings.ReplaceAll(v.Err.Error(), "\n", "; "), nil
	case d.Action.Promotes():
		return fmt.Sprintf("%s goes out at once: %s", d.Release.Tag, d.Message), nil
	case len(d.Candidates) > 0 && !d.Candidates[0].Eligible():
		return fmt.Sprintf("%s is held: %s", d.Candidates[0].Release.Tag, d.Candidates[0].Holds[0].Message), nil
	}
	return explain.StateNow(v.Input, d).Cause, nil
}
