// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
)

// The namespace and the ServiceAccount of the controller in the manifests.
const (
	Namespace = "kuberik-system"
	Account   = "rollout-controller-controller-manager"
)

// User returns the API server's user name of a ServiceAccount in the controller's
// namespace.
func User(account string) string { return "system:serviceaccount:" + Namespace + ":" + account }

// accessKinds are the kinds of the shipped manifests that define permissions.
var accessKinds = []string{"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}

// Manifests returns the manifests that users apply: config/default with some of
// config/components. It fills in the rules of the aggregated ClusterRoles.
func Manifests(ctx context.Context, components ...string) ([]*unstructured.Unstructured, error) {
	objects, err := manifests.WithComponents(ctx, components...)
	if err != nil {
		return nil, fmt.Errorf("render the shipped manifests: %w", err)
	}
	return objects, aggregate(objects)
}

// Install creates the shipped roles, including those of some components, and binds them
// to an account, as the manifests bind them to the controller's. It returns the path of a
// kubeconfig for this account alone.
func Install(ctx context.Context, plane *controlplane.ControlPlane, account string, components ...string) (string, error) {
	objects, err := Manifests(ctx, components...)
	if err != nil {
		return "", err
	}
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return !slices.Contains(accessKinds, o.GetKind()) })
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		return slices.Index(accessKinds, a.GetKind()) - slices.Index(accessKinds, b.GetKind())
	})
	for _, object := range objects {
		if err := rebind(object, account); err != nil {
			return "", err
		}
		if err := plane.Client().Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return "", fmt.Errorf("install the shipped %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return Credentials(plane, account)
}

// InstallAdmission creates the objects of components that make the API server itself act, such
// as those that pause Deployments which wait for their turn. They take effect some moments
// later.
func InstallAdmission(ctx context.Context, plane *controlplane.ControlPlane, components ...string) error {
	objects, err := Manifests(ctx, components...)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if object.GroupVersionKind().Group != admissionv1.GroupName {
			continue
		}
		if err := plane.Client().Create(ctx, object); err != nil {
			return fmt.Errorf("install the shipped %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// Credentials makes a kubeconfig for an account of the controller's namespace. It does
// not change the permissions of the account.
func Credentials(plane *controlplane.ControlPlane, account string) (string, error) {
	return plane.AddUser(User(account), "system:serviceaccounts", "system:serviceaccounts:"+Namespace)
}

// rebind changes a binding to the controller into a binding to another account.
func rebind(object *unstructured.Unstructured, account string) error {
	if account == Account || object.GetKind() != "ClusterRoleBinding" && object.GetKind() != "RoleBinding" {
		return nil
	}
	subject := map[string]any{"kind": "ServiceAccount", "name": account, "namespace": Namespace}
	object.SetName(object.GetName() + "-" + account)
	return unstructured.SetNestedSlice(object.Object, []any{subject}, "subjects")
}

// aggregate fills in the aggregated ClusterRoles, as the controller manager of a cluster
// does: not every control plane here has one.
func aggregate(objects []*unstructured.Unstructured) error {
	roles, err := manifests.As[rbacv1.ClusterRole](objects, "ClusterRole")
	if err != nil {
		return err
	}
	for _, object := range objects {
		role := rbacv1.ClusterRole{}
		if object.GetKind() != "ClusterRole" {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
			return fmt.Errorf("read ClusterRole %s: %w", object.GetName(), err)
		}
		if role.AggregationRule == nil {
			continue
		}
		role.Rules = sum(roles, role.AggregationRule.ClusterRoleSelectors)
		if object.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&role); err != nil {
			return fmt.Errorf("write ClusterRole %s: %w", role.Name, err)
		}
	}
	return nil
}

func sum(roles []rbacv1.ClusterRole, selectors []metav1.LabelSelector) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for i := range roles {
		if slices.ContainsFunc(selectors, func(s metav1.LabelSelector) bool {
			selector, err := metav1.LabelSelectorAsSelector(&s)
			return err == nil && selector.Matches(labels.Set(roles[i].Labels))
		}) {
			rules = append(rules, roles[i].Rules...)
		}
	}
	return rules
}

// CreateFluxRoles creates Flux's own roles for people.
func CreateFluxRoles(ctx context.Context, plane *controlplane.ControlPlane) error {
	edit, view := FluxEdit(), FluxEdit()
	view.Name, view.Rules = "flux-view", edit.Rules[1:]
	edit.Labels = map[string]string{"rbac.authorization.k8s.io/aggregate-to-edit": "true", "rbac.authorization.k8s.io/aggregate-to-admin": "true"}
	view.Labels = map[string]string{"rbac.authorization.k8s.io/aggregate-to-view": "true"}
	for _, role := range []*rbacv1.ClusterRole{edit, view} {
		if err := plane.Client().Create(ctx, role); err != nil {
			return fmt.Errorf("create ClusterRole %s: %w", role.Name, err)
		}
	}
	return nil
}

// AggregateForPeople creates Flux's own roles for people, and fills in the rules of
// Kubernetes' view, edit and admin, as the controller manager of a cluster does.
func AggregateForPeople(ctx context.Context, plane *controlplane.ControlPlane) error {
	if err := CreateFluxRoles(ctx, plane); err != nil {
		return err
	}
	for _, name := range []string{"view", "edit", "admin"} { // each contains the one before
		all := &rbacv1.ClusterRoleList{}
		if err := plane.Client().List(ctx, all); err != nil {
			return fmt.Errorf("list ClusterRoles: %w", err)
		}
		at := slices.IndexFunc(all.Items, func(r rbacv1.ClusterRole) bool { return r.Name == name })
		role := all.Items[at].DeepCopy()
		role.Rules = sum(all.Items, role.AggregationRule.ClusterRoleSelectors)
		if err := plane.Client().Update(ctx, role); err != nil {
			return fmt.Errorf("fill in ClusterRole %s: %w", name, err)
		}
	}
	return nil
}

// FluxEdit returns Flux's own role for editors (manifests/rbac/edit.yaml of flux2).
// Kubernetes aggregates it into its roles edit and admin. It includes the status of
// Flux's objects.
func FluxEdit() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "flux-edit"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{
				"notification.toolkit.fluxcd.io", "source.toolkit.fluxcd.io", "source.extensions.fluxcd.io", "helm.toolkit.fluxcd.io",
				"image.toolkit.fluxcd.io", "kustomize.toolkit.fluxcd.io",
			},
			Resources: []string{rbacv1.ResourceAll},
			Verbs:     []string{"create", "delete", "deletecollection", "patch", "update"},
		}, {
			APIGroups: []string{
				"notification.toolkit.fluxcd.io", "source.toolkit.fluxcd.io", "source.extensions.fluxcd.io", "helm.toolkit.fluxcd.io",
				"image.toolkit.fluxcd.io", "kustomize.toolkit.fluxcd.io",
			},
			Resources: []string{rbacv1.ResourceAll},
			Verbs:     []string{"get", "list", "watch"}, // the role edit has these from flux-view
		}},
	}
}

// Grant gives a user the rules of a ClusterRole in one namespace.
func Grant(ctx context.Context, plane *controlplane.ControlPlane, user, role, namespace string) error {
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "grant-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if err := plane.Client().Create(ctx, binding); err != nil {
		return fmt.Errorf("bind ClusterRole %s: %w", role, err)
	}
	return nil
}
