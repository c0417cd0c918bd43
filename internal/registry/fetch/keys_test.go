// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func keysIn(namespace, name, entry string, content []byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{entry: content}}
}

func TestTrustedKeysOfAnEnvironment(t *testing.T) {
	_, one := key(t, 1)
	_, two := key(t, 2)
	own, forAll := keysIn(fixture.Namespace, "keys", "a.pub", one), keysIn(trustedSecret.Namespace, trustedSecret.Name, "b.pub", two)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "keys", errors.New("no"))
	for name, test := range map[string]struct {
		secrets []client.Object
		named   string
		trusted types.NamespacedName
		fails   error
		want    string // the message, or the fingerprint's Secret
	}{
		"its own":                     {[]client.Object{own, forAll}, "keys", trustedSecret, nil, "keys"},
		"those of the controller":     {[]client.Object{own, forAll}, "", trustedSecret, nil, "promotion-keys"},
		"not those of the controller": {[]client.Object{forAll}, "keys", trustedSecret, nil, "Secret shop-prod/keys of spec.backend.verify does not exist: create it, with the public keys of other clusters in PEM as CLUSTER.pub"},
		"none named":                  {nil, "", types.NamespacedName{}, nil, "no keys are trusted: name a Secret with public keys in spec.backend.verify, or start the controller with --trusted-keys-secret"},
		"missing":                     {nil, "", trustedSecret, nil, "Secret controller/promotion-keys of --trusted-keys-secret does not exist: create it, with the public keys of other clusters in PEM as CLUSTER.pub"},
		"forbidden":                   {nil, "keys", trustedSecret, forbidden, "Secret shop-prod/keys of spec.backend.verify cannot be read: bind the ClusterRole rollout-controller-registry-credentials-role to the controller in that namespace"},
		"no key":                      {[]client.Object{keysIn(fixture.Namespace, "keys", "a.pem", one)}, "keys", trustedSecret, nil, "there are no trusted keys: Secret shop-prod/keys has no public key: add one in PEM as CLUSTER.pub"},
		"broken":                      {[]client.Object{keysIn(fixture.Namespace, "keys", "a.pub", []byte("x"))}, "keys", trustedSecret, nil, "there are no trusted keys: read a.pub of Secret shop-prod/keys: it is not a PUBLIC KEY in PEM"},
		"unknown":                     {nil, "keys", trustedSecret, errAway, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
			reader := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(test.secrets...).Build(), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					if test.fails != nil {
						return test.fails
					}
					return c.Get(ctx, key, o, options...)
				},
			})
			e := fixture.MakeEnvironment("prod").Obj()
			if test.named != "" {
				e.Spec.Backend.Verify = &environmentsv1.Verification{SecretRef: v1alpha1.LocalObjectReference{Name: test.named}}
			}
			keys, problem, err := NewKeys(reader, test.trusted)(t.Context(), e)
			switch {
			case test.want == "":
				g.Expect(err).To(MatchError(ContainSubstring("get Secret shop-prod/keys: no route to host")))
				return
			case problem != nil:
				g.Expect(problem.Reason).To(Equal(environmentsv1.NoTrustedKeysReason))
				g.Expect(problem.Message).To(Equal(test.want))
			default:
				signing, _ := key(t, map[string]byte{"keys": 1, "promotion-keys": 2}[test.want])
				g.Expect(keys.IDs()).To(Equal(signing.Trusted().IDs()))
			}
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
}
