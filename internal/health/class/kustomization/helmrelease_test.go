// SPDX-License-Identifier: Apache-2.0

package kustomization_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/kustomization"
)

const helmReleaseAnnotation = "healthcheck.kuberik.com/helmrelease"

// retriesExceeded are the conditions of a HelmRelease after Helm has waited in vain.
var retriesExceeded = []metav1.Condition{
	condition(meta.ReadyCondition, metav1.ConditionFalse, helmv2.UpgradeFailedReason, "Helm upgrade failed: context deadline exceeded"),
	condition(meta.StalledCondition, metav1.ConditionTrue, "RetriesExceeded", "Failed to upgrade after 1 attempt(s)"),
}

// helmPass are the conditions that helm-controller sets while it looks whether there is
// something to do.
var helmPass = []metav1.Condition{ready, condition(meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingReason, "Fulfilling prerequisites")}

// chart returns the HelmRelease shop/web, whose chart 1.0.0 is deployed.
func chart(conditions []metav1.Condition, ids ...string) *helmv2.HelmRelease {
	h := &helmv2.HelmRelease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 1},
		Status: helmv2.HelmReleaseStatus{
			ObservedGeneration: 1, LastAttemptedRevision: "1.0.0", LastAttemptedRevisionDigest: "sha256:1", Conditions: conditions,
			History:   helmv2.Snapshots{{Version: 1, Status: "deployed", ChartVersion: "1.0.0", OCIDigest: "sha256:1"}},
			Inventory: &helmv2.ResourceInventory{},
		},
	}
	for _, id := range ids {
		h.Status.Inventory.Entries = append(h.Status.Inventory.Entries, helmv2.ResourceRef{ID: id, Version: "v1"})
	}
	return h
}

func changed(h *helmv2.HelmRelease, change func(*helmv2.HelmRelease)) *helmv2.HelmRelease {
	change(h)
	return h
}

// byHelm returns the object as one that helm-controller has applied for shop/web.
func byHelm[T client.Object](o T) T {
	labels := maps.Clone(o.GetLabels())
	maps.DeleteFunc(labels, func(key, _ string) bool { return key == ownerName || key == ownerNamespace })
	labels["helm.toolkit.fluxcd.io/name"], labels["helm.toolkit.fluxcd.io/namespace"] = "web", "shop"
	o.SetLabels(labels)
	return o
}

// allByHelm labels the first of the objects.
func allByHelm(objects []client.Object) []client.Object {
	byHelm(objects[0])
	return objects
}

func TestHealthOfAHelmReleaseAndItsInventory(t *testing.T) {
	const healthyMessage = "HelmRelease shop/web is applied, and nothing of it is failed or in progress"
	applied := []metav1.Condition{ready}
	waitsForImage := podOf("hash-2", "a", waitsFor("ErrImagePull"), 0)
	for name, tc := range map[string]struct {
		was     v1alpha1.HealthStatus
		objects []client.Object
		status  v1alpha1.HealthStatus
		reason  v1alpha1.MeasuringReason
		message string
	}{
		"healthy when everything is current": {
			objects: []client.Object{chart(applied, webID), byHelm(deployment("web"))},
			status:  v1alpha1.HealthStatusHealthy, message: healthyMessage,
		},
		"unhealthy if an object has failed": {
			objects: []client.Object{chart(applied, webID, apiID), byHelm(failed("web", oldTime)), byHelm(deployment("api"))},
			status:  v1alpha1.HealthStatusUnhealthy,
			message: `Failed: Deployment shop/web: ReplicaSet "web-1" has timed out progressing.`,
		},
		"unhealthy if pods crash, although Helm does not wait": {
			objects: append(allByHelm(ofRevision(rolling("web"))), chart(applied, webID), podOf("hash-2", "a", waitsFor("CrashLoopBackOff"), 3)),
			status:  v1alpha1.HealthStatusUnhealthy, message: "Failed: Deployment shop/web: container app crashes again and again",
		},
		"pending while an object rolls out": {
			objects: []client.Object{chart(applied, webID), byHelm(rolling("web"))},
			status:  v1alpha1.HealthStatusPending, message: "Waiting for Deployment shop/web: Updated: 0/1",
		},
		"pending while Helm has failed, and tries again": {
			objects: []client.Object{chart(retriesExceeded[:1], webID), byHelm(deployment("web"))},
			status:  v1alpha1.HealthStatusPending, reason: v1alpha1.HealthNotObserved,
			message: "Waiting for HelmRelease shop/web: Helm upgrade failed: context deadline exceeded",
		},
		"unhealthy when helm-controller has given up": {
			objects: []client.Object{chart(retriesExceeded, webID), byHelm(deployment("web"))},
			status:  v1alpha1.HealthStatusUnhealthy, message: "Failed: HelmRelease shop/web: Failed to upgrade after 1 attempt(s)",
		},
		"given up because something was not started": {
			objects: append(allByHelm(ofRevision(rolling("web"))), chart(retriesExceeded, webID), waitsForImage),
			status:  v1alpha1.HealthStatusUnhealthy, reason: v1alpha1.HealthNotStarted,
			message: "Failed: HelmRelease shop/web: Failed to upgrade after 1 attempt(s)",
		},
		"given up although one thing was started": {
			objects: append(allByHelm(ofRevision(rolling("web"))), chart(retriesExceeded, webID, apiID), waitsForImage, byHelm(rolling("api"))),
			status:  v1alpha1.HealthStatusUnhealthy, message: "Failed: HelmRelease shop/web: Failed to upgrade after 1 attempt(s)",
		},
		"healthy stays healthy while helm-controller looks what to do": {
			was: v1alpha1.HealthStatusHealthy, objects: []client.Object{chart(helmPass, webID), byHelm(deployment("web"))},
			status: v1alpha1.HealthStatusHealthy, message: healthyMessage,
		},
		"any other waits for the end of that": {
			objects: []client.Object{chart(helmPass, webID), byHelm(deployment("web"))},
			status:  v1alpha1.HealthStatusPending, reason: v1alpha1.HealthNotObserved, message: "Waiting for HelmRelease shop/web: Flux is applying it",
		},
		"healthy does not stay so while Helm upgrades": {
			was: v1alpha1.HealthStatusHealthy, objects: []client.Object{chart(inPass, webID), byHelm(deployment("web"))},
			status: v1alpha1.HealthStatusPending, reason: v1alpha1.HealthNotObserved, message: "Waiting for HelmRelease shop/web: Flux is applying it",
		},
		"what is applied to another cluster is not looked for in this one": {
			objects: []client.Object{changed(chart(applied, webID), func(h *helmv2.HelmRelease) {
				h.Spec.KubeConfig = &meta.KubeConfigReference{}
			}), byHelm(failed("web", oldTime))},
			status:  v1alpha1.HealthStatusHealthy,
			message: "HelmRelease shop/web is applied to another cluster, where its objects are not looked at: let Helm wait for them to include their health",
		},
		"without an inventory, its own status counts, and the message says so": {
			objects: []client.Object{changed(chart(applied), func(h *helmv2.HelmRelease) { h.Status.Inventory = nil }), byHelm(failed("web", oldTime))},
			status:  v1alpha1.HealthStatusHealthy,
			message: "HelmRelease shop/web is ready, and its status has no inventory, so no objects of it are looked at: " +
				"helm-controller 1.5 and later writes one when it installs or upgrades",
		},
		"without an inventory, and not ready": {
			objects: []client.Object{changed(chart(retriesExceeded), func(h *helmv2.HelmRelease) { h.Status.Inventory = nil })},
			status:  v1alpha1.HealthStatusUnhealthy, message: "Failed: HelmRelease shop/web: Failed to upgrade after 1 attempt(s)",
		},
		"a Kustomization of the same name is another subject": {
			objects: []client.Object{source([]metav1.Condition{ready}, webID), deployment("web")},
			status:  v1alpha1.HealthStatusUnhealthy,
			message: "HelmRelease shop/web does not exist: create it, or name another in the annotation healthcheck.kuberik.com/helmrelease",
		},
		"what a Kustomization of the same name has applied is not looked at": {
			objects: []client.Object{chart(applied, webID), failed("web", oldTime)},
			status:  v1alpha1.HealthStatusHealthy, message: healthyMessage,
		},
	} {
		t.Run(name, func(t *testing.T) {
			hc := checkWith(helmReleaseAnnotation, "web")
			hc.Status.Status = tc.was
			got := check(t, hc, interceptor.Funcs{}, tc.objects...)
			NewWithT(t).Expect([]any{got.Status, got.Reason, got.Message}).To(Equal([]any{tc.status, tc.reason, tc.message}))
		})
	}
}

// Nobody can see what an object says that the HelmRelease has not applied, whether it is
// read alone or with others.
func TestObjectsThatTheHelmReleaseHasNotAppliedAreNotLookedAt(t *testing.T) {
	for _, labels := range []map[string]string{
		nil,
		{"helm.toolkit.fluxcd.io/name": "web", "helm.toolkit.fluxcd.io/namespace": "bert"},
		{"helm.toolkit.fluxcd.io/name": "app", "helm.toolkit.fluxcd.io/namespace": "shop"},
		{"kustomize.toolkit.fluxcd.io/name": "web", "kustomize.toolkit.fluxcd.io/namespace": "shop"},
	} {
		secret := failed("app", time.Now())
		secret.Namespace, secret.Labels = "bert", labels
		others := []string{"bert_b_apps_Deployment", "bert_c_apps_Deployment", "bert_d_apps_Deployment"}
		for _, ids := range [][]string{{"bert_app_apps_Deployment"}, append(slices.Clone(others), "bert_app_apps_Deployment")} {
			got := check(t, checkWith(helmReleaseAnnotation, "web"), interceptor.Funcs{}, secret.DeepCopy(), chart([]metav1.Condition{ready}, ids...))
			if got.Status != v1alpha1.HealthStatusHealthy || got.Kinds != nil {
				t.Errorf("with the labels %v, of %d objects it says %s: %s", labels, len(ids), got.Status, got.Message)
			}
		}
	}
}

func TestCheckIsAboutExactlyOneThing(t *testing.T) {
	for want, given := range map[string]map[string]string{
		"The annotations healthcheck.kuberik.com/kustomization and healthcheck.kuberik.com/helmrelease are both set: remove one of them": {
			v1alpha1.KustomizationAnnotation: "web", helmReleaseAnnotation: "web",
		},
		`The annotation healthcheck.kuberik.com/kustomization is missing: set it to the "name" or "namespace/name" of a Kustomization, ` +
			"or set healthcheck.kuberik.com/helmrelease to that of a HelmRelease": nil,
		`The annotation healthcheck.kuberik.com/helmrelease is "a/b/c", which names no HelmRelease: set it to "name" or "namespace/name"`: {
			helmReleaseAnnotation: "a/b/c",
		},
	} {
		t.Run(want, func(t *testing.T) {
			hc := checkWith("", "")
			hc.Annotations = given
			NewWithT(t).Expect(check(t, hc, interceptor.Funcs{})).To(Equal(health.Unhealthy(want, time.Time{})))
		})
	}
}

func TestHelmReleaseOfAnotherNamespaceMayBeRefused(t *testing.T) {
	checker := kustomization.Checker{Now: time.Now, NoCrossNamespaceRefs: true}
	NewWithT(t).Expect(evaluate(&checker, checkWith(helmReleaseAnnotation, "apps/web")).Message).To(Equal(
		"The annotation healthcheck.kuberik.com/helmrelease names HelmRelease apps/web, but references across namespaces are not allowed: " +
			"create the HealthCheck in the namespace apps"))
}

func TestEventsOfAHelmReleaseThatAreChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		change         func(*helmv2.HelmRelease)
		healthy, other bool
	}{
		"a new version alone is none":         {func(h *helmv2.HelmRelease) { h.ResourceVersion = "9" }, false, false},
		"an idle pass is, but not to Healthy": {func(h *helmv2.HelmRelease) { h.Status.Conditions = helmPass }, false, true},
		"an upgrade is":                       {func(h *helmv2.HelmRelease) { h.Status.Conditions = inPass }, true, true},
		"a failure is":                        {func(h *helmv2.HelmRelease) { h.Status.Conditions = retriesExceeded }, true, true},
		"a new generation is":                 {func(h *helmv2.HelmRelease) { h.Generation = 2 }, true, true},
		"a new attempt is":                    {func(h *helmv2.HelmRelease) { h.Status.LastAttemptedRevisionDigest = "sha256:2" }, true, true},
		"a new version of Helm is": {func(h *helmv2.HelmRelease) {
			h.Status.History = append(helmv2.Snapshots{{Version: 2, Status: "deployed", ChartVersion: "1.0.0", OCIDigest: "sha256:1"}}, h.Status.History...)
		}, true, true},
		"another object is":             {func(h *helmv2.HelmRelease) { h.UID = "b" }, true, true},
		"a deletion is":                 {func(h *helmv2.HelmRelease) { h.DeletionTimestamp = &metav1.Time{Time: newTime} }, true, true},
		"a version without history is":  {func(h *helmv2.HelmRelease) { h.Status.History, h.ResourceVersion = nil, "9" }, true, true},
		"a smaller cached copy is none": {func(h *helmv2.HelmRelease) { h.Status.Inventory = nil }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before := chart([]metav1.Condition{ready}, webID)
			after := before.DeepCopy()
			tc.change(after)
			g.Expect(kustomization.Basis(after, true) != kustomization.Basis(before, true)).To(Equal(tc.healthy), "to a healthy check")
			g.Expect(kustomization.Basis(after, false) != kustomization.Basis(before, false)).To(Equal(tc.other), "to any other")
		})
	}
}
