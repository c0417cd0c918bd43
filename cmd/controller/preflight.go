// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// kind is a kind that a controller requires, in any of some versions, and how to install
// it.
type kind struct {
	schema.GroupKind
	versions []string
	install  string
}

// right is a right that a controller requires.
type right struct{ verb, group, resource, subresource, name string }

// hasNoNamespace contains the resources that no right in a namespace is about.
var hasNoNamespace = map[string]bool{clusterQuarantines: true, clusterGates: true}

const (
	ourCRDs   = "install the CRDs of config/crd"
	fluxCRDs  = "install Flux 2.6 or newer"
	imageCRDs = "install Flux's image-reflector-controller (Flux 2.6 or newer)"
)

// installs describes how to install the roles and the CRD of a controller that not every
// installation has.
var installs = map[string]string{
	clusterGateController:  "install the CRDs and the roles of this version",
	quarantineController:   "install the CRDs and the roles of this version",
	environmentController:  "install the CRDs and the roles of this version",
	coordinationController: "install the component deployment-coordination, or the chart with deploymentCoordination.enabled",
	statefulSetController:  "install the component statefulset-rollout, or the chart with statefulSetRollout.enabled",
}

// kindsOf returns the kinds that must be served for a controller to start.
func kindsOf(controller string) []kind {
	of := func(version, group, install string, kinds ...string) []kind {
		var all []kind
		for _, name := range kinds {
			all = append(all, kind{schema.GroupKind{Group: group, Kind: name}, []string{version}, install})
		}
		return all
	}
	release := slices.Concat(
		of("v1alpha1", v1alpha1.GroupVersion.Group, ourCRDs,
			v1alpha1.RolloutKind, "RolloutGate", "HealthCheck", "RolloutSchedule", "ClusterRolloutSchedule"),
		of("v1", sourcev1.GroupVersion.Group, fluxCRDs, sourcev1.OCIRepositoryKind),
		of("v1", kustomizev1.GroupVersion.Group, fluxCRDs, kustomizev1.KustomizationKind))
	switch controller {
	case rolloutController:
		image := kind{schema.GroupKind{Group: imagev1.GroupVersion.Group, Kind: imagev1.ImagePolicyKind}, []string{"v1", "v1beta2"}, imageCRDs}
		return append(release, image)
	case environmentController:
		return append(release, environmentKind)
	case quarantineController:
		return append(release, quarantineKinds...)
	case clusterGateController:
		return append(release, approvalKinds...)
	case coordinationController:
		return of("v1", coordinationv1.GroupVersion.Group, installs[coordinationController], coordinationv1.DeploymentCoordinationKind)
	case statefulSetController:
		return nil
	}
	return release
}

// rightsOf returns the rights that a controller requires if it is only wanted by default.
// Without them it stays off. The default installation has none of the coordinators'
// rights to write.
func rightsOf(controller string) []right {
	switch controller {
	case environmentController:
		return rightsOn(environmentsv1.GroupVersion.Group, environments, "list", "watch", "patch/status")
	case quarantineController:
		return append(rightsOn(quarantineGroup, quarantines, "list", "watch", "patch/status", "delete"),
			rightsOn(quarantineGroup, clusterQuarantines, "list", "watch", "patch/status")...)
	case clusterGateController:
		return rightsOn(v1alpha1.GroupVersion.Group, clusterGates, "list", "watch", "patch/status")
	case coordinationController:
		return append(rightsOn(coordinationv1.GroupVersion.Group, "deploymentcoordinations", "list", "watch", "patch/status"),
			rightsOn("apps", "deployments", "patch")...)
	case statefulSetController:
		return append(rightsOn("apps", "statefulsets", "list", "watch"), rightsOn("", "pods", "list", "delete")...)
	}
	return nil
}

// rightsOn returns the rights for verbs on a resource; "patch/status" is one on a subresource.
func rightsOn(group, resource string, verbs ...string) []right {
	var all []right
	for _, verb := range verbs {
		verb, subresource, _ := strings.Cut(verb, "/")
		all = append(all, right{verb, group, resource, subresource, ""})
	}
	return all
}

// cluster checks which kinds the API server serves, and which rights this program has.
type cluster struct {
	mapper meta.RESTMapper
	access authorizationclient.SelfSubjectAccessReviewInterface
}

// unserved is the error for a kind that the API server does not serve.
type unserved struct{ kind }

// Error describes how to install the kind.
func (u unserved) Error() string {
	return fmt.Sprintf("the API server serves no %s: %s", u.GroupKind, u.install)
}

// preflight returns which controllers start: those that are wanted by name, and of the
// rest those that can. It also returns which of the others wait for a kind to be served.
// It returns an error if a controller that is wanted by name lacks something, or if none
// can start.
func (o *options) preflight(ctx context.Context, c cluster) (starts map[string]bool, waiting []string, err error) {
	lacking := map[string]error{}
	for _, name := range controllers() {
		wanted, byName := o.chosen.wants(name)
		if !wanted {
			continue
		}
		lack, err := o.lacks(ctx, c, name, byName)
		if err == nil && byName {
			err = lack
		}
		if err != nil {
			return nil, nil, fmt.Errorf("the controller %s cannot start: %w", name, err)
		}
		lacking[name] = lack
	}
	o.together(lacking)
	return settle(lacking)
}

// together keeps all release controllers that are not named off when one of them cannot
// start: it would be worse to run half of them than none.
func (o *options) together(lacking map[string]error) {
	var lack error
	for _, name := range releaseControllers {
		lack = cmp.Or(lack, lacking[name])
	}
	for _, name := range releaseControllers {
		if _, byName := o.chosen.wants(name); !byName && lacking[name] == nil {
			if _, wanted := lacking[name]; wanted {
				lacking[name] = lack
			}
		}
	}
	for _, name := range newerControllers {
		why, wanted := lacking[name]
		if _, byName := o.chosen.wants(name); wanted && !byName {
			lacking[name] = cmp.Or(why, lack) // nobody would read what it records
		}
	}
}

// settle returns the controllers that lack nothing, and those that lack a kind. It logs
// why the others stay off.
func settle(lacking map[string]error) (starts map[string]bool, waiting []string, err error) {
	starts = map[string]bool{}
	var stays []error
	for _, name := range controllers() {
		lack, wanted := lacking[name]
		if !wanted || lack == nil {
			starts[name] = wanted
			continue
		}
		stays = append(stays, fmt.Errorf("%s: %w", name, lack))
		if _, missing := errors.AsType[unserved](lack); missing {
			waiting = append(waiting, name)
		}
	}
	maps.DeleteFunc(starts, func(_ string, on bool) bool { return !on })
	if len(starts) == 0 {
		return nil, nil, fmt.Errorf("no controller can start: %w", errors.Join(stays...))
	}
	for _, reason := range stays {
		ctrl.Log.Info("a controller stays off", "because", reason.Error())
	}
	return starts, waiting, nil
}

// lacks returns what keeps a controller from starting, or nil. It checks rights only for
// a controller that is not named. A named controller without them starts, and its log
// shows every refused request.
func (o *options) lacks(ctx context.Context, c cluster, controller string, byName bool) (lack, err error) {
	if !byName {
		missing, err := c.lacksAny(ctx, o.needed(rightsOf(controller)), o.onlyWatched())
		if missing.verb != "" || err != nil {
			return fmt.Errorf("this account may not %s: %s", missing, installs[controller]), err
		}
	}
	return c.missing(controller)
}

// needed returns the rights that this instance uses: one that watches a single namespace
// writes nothing outside of it.
func (o *options) needed(rights []right) []right {
	if o.allNamespaces {
		return rights
	}
	return slices.DeleteFunc(slices.Clone(rights), func(r right) bool { return hasNoNamespace[r.resource] })
}

// missing returns the first kind of a controller that is not served, or nil if all are.
func (c cluster) missing(controller string) (lack, err error) {
	for _, kind := range kindsOf(controller) {
		if served, err := c.serves(kind); err != nil || !served {
			return unserved{kind}, err
		}
	}
	return nil, nil
}

// onlyWatched returns the only watched namespace. It is empty if all are watched.
func (o *options) onlyWatched() string {
	for namespace := range o.namespaces() {
		return namespace
	}
	return ""
}

func (c cluster) serves(k kind) (bool, error) {
	for _, version := range k.versions {
		_, err := c.mapper.RESTMapping(k.GroupKind, version)
		if err == nil {
			return true, nil
		}
		if !meta.IsNoMatchError(err) {
			return false, fmt.Errorf("look up %s: %w", k.GroupKind, err)
		}
	}
	return false, nil
}

func (c cluster) allows(ctx context.Context, r right, namespace string) (bool, error) {
	if hasNoNamespace[r.resource] {
		namespace = ""
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: r.verb, Group: r.group, Resource: r.resource, Subresource: r.subresource, Name: r.name,
		},
	}}
	answer, err := c.access.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask what this account may do: %w", err)
	}
	return answer.Status.Allowed, nil
}

func (r right) String() string {
	resource := r.resource
	if r.group != "" {
		resource += "." + r.group
	}
	return strings.TrimSpace(r.verb + " " + strings.TrimSuffix(resource+"/"+r.subresource, "/"))
}
