// SPDX-License-Identifier: Apache-2.0

// Package access compares the rights of the controller with the requests that it makes.
package access

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

func TestMain(m *testing.M) { os.Exit(fixture.ExitCode(m.Run())) }

// unused contains the rights in the shipped roles that the controller does not use. Each
// has a reason to be there.
var unused = map[string]string{
	"get image.toolkit.fluxcd.io/imagepolicies":     "the contract with clients that bind to the role",
	"get image.toolkit.fluxcd.io/imagerepositories": "the contract",
	"get /namespaces":                                       "the contract",
	"get kuberik.com/clusterrolloutschedules":               "the contract",
	"get kuberik.com/rolloutschedules":                      "the contract",
	"update kuberik.com/rollouts":                           "the contract",
	"get kuberik.com/rollouts/status":                       "the contract",
	"update kuberik.com/rollouts/status":                    "the contract",
	"update kuberik.com/healthchecks":                       "the contract",
	"get kuberik.com/healthchecks/status":                   "the contract",
	"update kuberik.com/healthchecks/status":                "the contract",
	"get kuberik.com/rolloutgates":                          "the contract",
	"get environments.kuberik.com/environments":             "a cache that reads one object by its name",
	"get environments.kuberik.com/environments/status":      "a client that patches what it has read",
	"get source.toolkit.fluxcd.io/gitrepositories":          "the same of a GitRepository",
	"get helm.toolkit.fluxcd.io/helmreleases":               "read past the caches before an end, if there is one",
	"get source.extensions.fluxcd.io/artifactgenerators":    "source-watcher, which is not in this cluster",
	"list source.extensions.fluxcd.io/artifactgenerators":   "the same",
	"watch source.extensions.fluxcd.io/artifactgenerators":  "the same",
	"get source.toolkit.fluxcd.io/externalartifacts":        "the same",
	"list source.toolkit.fluxcd.io/externalartifacts":       "the same",
	"watch source.toolkit.fluxcd.io/externalartifacts":      "the same",
	"get source.toolkit.fluxcd.io/buckets":                  "the same: other sources of an ArtifactGenerator",
	"get source.toolkit.fluxcd.io/helmcharts":               "the same",
	"update kustomize.toolkit.fluxcd.io/kustomizations":     "the contract",
	"update source.toolkit.fluxcd.io/ocirepositories":       "the contract",
	"delete kuberik.com/rolloutapprovals":                   "approvals are kept for 90 days",
	"patch /events":                                         "an event that is sent again",
	"update kuberik.com/clusterrolloutschedules/finalizers": "admission that asks it of whoever blocks an owner's deletion",
	"update kuberik.com/rolloutschedules/finalizers":        "the same",
}

func TestShippedRolesAllowWhatTheControllerDoesAndLittleElse(t *testing.T) {
	plane := env.StartFor(t, controlplane.Options{Flux: true, HelmCRDs: true, ImageScanner: true}, env.AsShipped...)
	s := env.New(t, plane)
	useEverything(s)

	audited, err := plane.Audited()
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, request := range audited {
		if request.User == scenario.User(scenario.Account) {
			used[request.Verb+" "+request.Resource] = true
			if request.Verb == "watch" { // clients list first if an API server cannot stream lists
				used["list "+request.Resource] = true
			}
		}
	}
	var spare []string
	for _, right := range rights(t, plane) {
		if !used[right] {
			spare = append(spare, right)
		}
	}
	want := []string{}
	for right := range unused {
		want = append(want, right)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, spare); diff != "" {
		t.Errorf("rights that are not used (-with a reason +there are):\n%s", diff)
	}
}

// useEverything makes the controller use all its features: promote with a bake and
// checks, write all kinds of targets and restore one, read a registry with credentials,
// create, update and delete gates, own a HealthCheck, answer a request, report a failure, and show the state of
// quarantines and delete one.
func useEverything(s *env.Env) {
	objects := s.Flux(s.Plane.Registry.Host())
	for _, o := range objects {
		switch o := o.(type) {
		case *imagev1.ImageRepository:
			o.Spec.SecretRef, o.Spec.ServiceAccountName = &meta.LocalObjectReference{Name: "login"}, "puller"
		case *kustomizev1.Kustomization:
			o.Annotations = map[string]string{v1alpha1.SubstituteAnnotationPrefix + "VERSION" + v1alpha1.SubstituteAnnotationSuffix: s.Name}
		}
	}
	s.Create(objects[0], login(s), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "puller"}})
	s.Create(objects[1:]...)
	s.Create(s.HealthCheck(), s.Rollout(s.Baked(time.Second, time.Minute)), &environmentsv1.Environment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "staging"},
		Spec: environmentsv1.EnvironmentSpec{
			RolloutRef: v1alpha1.LocalObjectReference{Name: s.Name}, Name: "shop", Environment: "staging",
			Backend: environmentsv1.Backend{Type: environmentsv1.BackendCluster},
		},
	})
	s.Publish(s.ConfigRelease("1.0.0"))
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	s.Await("its metadata", func(r *v1alpha1.Rollout) bool { return r.Current().Version.Revision != nil })

	own, cluster := freezes(s)
	s.Create(own, cluster)
	awaitGates(s, 2)
	for _, schedule := range []client.Object{own, cluster} {
		s.Change(schedule, func() { schedule.SetAnnotations(map[string]string{v1alpha1.PrettyNameAnnotation: "Freeze"}) })
	}
	awaitPretty(s)
	s.Publish(s.ConfigRelease("1.1.0"))
	s.AwaitCandidate("1.1.0")
	s.Ask(v1alpha1.BypassGatesAnnotation, "1.1.0")
	s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	for _, schedule := range []client.Object{own, cluster} {
		s.Read(schedule)
		s.Change(schedule, func() { selectNothing(schedule) })
	}
	awaitGates(s, 0)
	repository := s.OCIRepository("")
	s.Change(repository, func() { repository.Spec.Reference.Tag = "1.0.0" })
	env.Eventually(s.T, "the target put back", func() (bool, string) {
		s.Read(repository)
		return repository.Spec.Reference.Tag == "1.1.0", repository.Spec.Reference.Tag
	})
	ownCheck(s)
	failReported(s) // 1.2.0
	release := s.PackagedHelmRelease()
	s.Create(release)
	env.Eventually(s.T, "the value written", func() (bool, string) {
		s.Read(release)
		return strings.Contains(string(release.Spec.Values.Raw), `"tag":"1.2.0"`), string(release.Spec.Values.Raw)
	})
	fromGit(s)
	recall(s)
	leaveOver(s)
}

// fromGit has the Rollout write a GitRepository.
func fromGit(s *env.Env) {
	repository := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.Namespace, Name: s.Name, Annotations: map[string]string{v1alpha1.RolloutAnnotation: s.Name},
	}}
	repository.Spec.URL, repository.Spec.Interval = "http://127.0.0.1:1/shop", metav1.Duration{Duration: time.Hour}
	s.Create(repository)
	env.Eventually(s.T, "the tag written", func() (bool, string) {
		s.Read(repository)
		ref := repository.Spec.Reference
		return ref != nil && ref.Tag == "1.2.0", "none"
	})
	s.Delete(repository)
}

// ownCheck has the Rollout own a HealthCheck for a while.
func ownCheck(s *env.Env) {
	rollout, own := s.Rollout(), s.HealthCheck()
	own.Name = s.Name + "-kustomization-" + s.Name
	await := func(what string, isThere bool) {
		env.Eventually(s.T, what, func() (bool, string) {
			err := s.Plane.Client().Get(s.T.Context(), client.ObjectKeyFromObject(own), own)
			return isThere == (err == nil), fmt.Sprint(err)
		})
	}
	s.Read(rollout)
	selector := rollout.Spec.HealthCheckSelector
	s.Change(rollout, func() {
		rollout.Spec.HealthCheckSelector, rollout.Spec.TargetHealth = nil, v1alpha1.TargetHealthRequired
	})
	await("a HealthCheck that the Rollout owns", true)
	s.Change(rollout, func() { rollout.Spec.HealthCheckSelector, rollout.Spec.TargetHealth = selector, "" })
	await("the end of it", false)
}

// failReported makes a release fail, and waits until that is reported to a
// ReleaseQuarantine.
func failReported(s *env.Env) {
	check := s.HealthCheck()
	check.Name, check.Annotations, check.Spec.Class = "custom", nil, nil // no controller evaluates it
	s.Create(check)
	rollout := s.Rollout()
	s.Change(rollout, func() { rollout.Spec.Quarantine = &v1alpha1.RolloutQuarantine{} })
	s.Publish(s.ConfigRelease("1.2.0"))
	env.Eventually(s.T, "the reset of the HealthCheck", func() (bool, string) {
		s.Read(check)
		current := s.Live().Current()
		mark := check.Annotations[v1alpha1.ResetAnnotationPrefix+string(s.Live().UID)]
		return current.Version.Tag == "1.2.0" && strings.HasPrefix(mark, evidence.ResetMark(current, nil)) && !strings.HasSuffix(mark, "/begun"), mark
	})
	s.ChangeStatus(check, func() {
		check.Status.Status, check.Status.LastErrorTime = v1alpha1.HealthStatusUnhealthy, &metav1.Time{Time: time.Now()}
	})
	s.AwaitState("1.2.0", v1alpha1.BakeFailed)
	s.Await("the report of the failure", func(r *v1alpha1.Rollout) bool { return r.Current().Quarantine != "" })
}

// recall creates a ClusterReleaseQuarantine, and waits for its status.
func recall(s *env.Env) {
	q := &v1alpha1.ClusterReleaseQuarantine{
		ObjectMeta: metav1.ObjectMeta{Name: s.Namespace},
		Spec: v1alpha1.ClusterReleaseQuarantineSpec{ReleaseQuarantineSpec: v1alpha1.ReleaseQuarantineSpec{
			Image: "registry.example/other", Tags: []string{"1.0.0"},
		}},
	}
	s.Create(q)
	env.Eventually(s.T, "the phase of the recall", func() (bool, string) {
		s.Read(q)
		return q.Status.Phase == v1alpha1.QuarantineHeld, string(q.Status.Phase)
	})
}

// leaveOver creates a quarantine like one that the controller created and that ended more
// than a week ago, and waits until it is deleted.
func leaveOver(s *env.Env) {
	q := &v1alpha1.ReleaseQuarantine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: "over", Labels: map[string]string{v1alpha1.ManagedByLabel: promotion.SystemName},
		},
		Spec: v1alpha1.ReleaseQuarantineSpec{
			Image: "registry.example/other", Tags: []string{"1.0.0"}, Until: &metav1.Time{Time: time.Now().AddDate(0, 0, -9)},
		},
	}
	s.Create(q)
	s.ChangeStatus(q, func() {
		q.Status.Phase, q.Status.EndedAt = v1alpha1.QuarantineEnded, &metav1.Time{Time: time.Now().AddDate(0, 0, -8)}
	})
	env.Eventually(s.T, "the deletion of the quarantine", func() (bool, string) {
		err := s.Plane.Client().Get(s.T.Context(), client.ObjectKeyFromObject(q), q)
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

// login returns a Secret for the registry of the control plane, which accepts every
// login.
func login(s *env.Env) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "login"},
		Type:       corev1.SecretTypeDockerConfigJson,
		StringData: map[string]string{corev1.DockerConfigJsonKey: fmt.Sprintf(`{"auths":{%q:{"username":"u","password":"p"}}}`, s.Plane.Registry.Host())},
	}
}

func freezes(s *env.Env) (own, cluster client.Object) {
	spec := v1alpha1.RolloutScheduleSpec{
		RolloutSelector: &metav1.LabelSelector{}, Rules: []v1alpha1.ScheduleRule{{}}, Action: v1alpha1.ScheduleDeny,
	}
	return &v1alpha1.RolloutSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "freeze"}, Spec: spec},
		&v1alpha1.ClusterRolloutSchedule{
			ObjectMeta: metav1.ObjectMeta{Name: "freeze"},
			Spec:       v1alpha1.ClusterRolloutScheduleSpec{RolloutScheduleSpec: spec},
		}
}

func selectNothing(schedule client.Object) {
	nothing := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "none"}}
	switch schedule := schedule.(type) {
	case *v1alpha1.RolloutSchedule:
		schedule.Spec.RolloutSelector = nothing
	case *v1alpha1.ClusterRolloutSchedule:
		schedule.Spec.RolloutSelector = nothing
	}
}

func gates(s *env.Env) []v1alpha1.RolloutGate {
	list := &v1alpha1.RolloutGateList{}
	if err := s.Plane.Client().List(s.T.Context(), list, client.InNamespace(s.Namespace)); err != nil {
		s.T.Fatal(err)
	}
	return list.Items
}

func awaitGates(s *env.Env, want int) {
	env.Eventually(s.T, "the gates of the schedules", func() (bool, string) {
		got := gates(s)
		return len(got) == want, cmp.Diff(want, len(got))
	})
}

func awaitPretty(s *env.Env) {
	env.Eventually(s.T, "gates with the name of their schedule", func() (bool, string) {
		without := slices.DeleteFunc(gates(s), func(g v1alpha1.RolloutGate) bool {
			return g.Annotations[v1alpha1.PrettyNameAnnotation] == "Freeze"
		})
		return len(without) == 0, cmp.Diff(0, len(without))
	})
}

// rights returns the rights of the roles that only the controller has, as "verb
// resource", sorted.
func rights(t *testing.T, plane *env.Plane) []string {
	t.Helper()
	var rules []rbacv1.PolicyRule
	for _, name := range []string{"manager-role", "registry-credentials-role"} {
		role := &rbacv1.ClusterRole{}
		if err := plane.Client().Get(t.Context(), client.ObjectKey{Name: "rollout-controller-" + name}, role); err != nil {
			t.Fatal(err)
		}
		rules = append(rules, role.Rules...)
	}
	election := &rbacv1.Role{}
	key := client.ObjectKey{Namespace: scenario.Namespace, Name: "rollout-controller-leader-election-role"}
	if err := plane.Client().Get(t.Context(), key, election); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, rule := range append(rules, election.Rules...) {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, verb+" "+strings.Join([]string{group, resource}, "/"))
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
