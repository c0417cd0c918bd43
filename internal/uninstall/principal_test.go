// SPDX-License-Identifier: Apache-2.0

package uninstall_test

import (
	"context"
	"errors"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/internal/hold"
	"github.com/fluxrollouts/rollout-controller/internal/uninstall"
)

func TestActsInstead(t *testing.T) {
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "rollout-controller-deploymentcoordination-rolebinding"}}
	forbidden := apierrors.NewForbidden(rbacv1.Resource("clusterrolebindings"), binding.Name, errors.New("no role"))
	tests := map[string]struct {
		installation string
		installed    []client.Object
		err          error
		want, fails  bool
	}{
		"the coordinator alone":                  {installation: "kube-deployment-coordinator"},
		"with the controller":                    {installation: "kube-deployment-coordinator", installed: []client.Object{binding}, want: true},
		"the controller, whatever else is there": {installation: "rollout-controller", installed: []client.Object{binding}},
		"without the right to know":              {installation: "kube-deployment-coordinator", err: forbidden},
		"the API server does not answer":         {installation: "kube-deployment-coordinator", err: errors.New("not now"), fails: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			stored := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(tt.installed...).Build()
			c := interceptor.NewClient(stored, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if tt.err != nil {
						return tt.err
					}
					return c.Get(ctx, key, o, opts...)
				},
			})
			got, err := uninstall.ActsInstead(t.Context(), c, hold.NamesOf(tt.installation, "anywhere"))
			if got != tt.want || (err != nil) != tt.fails {
				t.Errorf("it is %t, %v; want %t, fails: %t", got, err, tt.want, tt.fails)
			}
		})
	}
}
