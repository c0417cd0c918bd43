// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationk8sv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/installation"
	"github.com/fluxrollouts/rollout-controller/internal/report"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// exchanged returns an Environment of type oci.
func exchanged(name, project string, change func(*environmentsv1.Environment)) *environmentsv1.Environment {
	e := &environmentsv1.Environment{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name}}
	e.Spec.RolloutRef.Name, e.Spec.Name, e.Spec.Environment = "shop", "shop", name
	e.Spec.Backend = environmentsv1.Backend{Type: environmentsv1.BackendOCI, Project: project}
	e.Status.ObservedGeneration = 1
	if change != nil {
		change(e)
	}
	return e
}

func afterStagingEU(e *environmentsv1.Environment) {
	e.Spec.Upstreams = []environmentsv1.Upstream{{Environment: "staging", Repository: "example.com/reports", Cluster: "staging-eu", Namespace: "shop"}}
}

func verifiedBy(secret string) func(*environmentsv1.Environment) {
	return func(e *environmentsv1.Environment) {
		afterStagingEU(e)
		e.Spec.Backend.Verify = &environmentsv1.Verification{}
		e.Spec.Backend.Verify.SecretRef.Name = secret
	}
}

func held() *coordinationk8sv1.Lease {
	renewed := metav1.NewMicroTime(noon.Add(-time.Second))
	return &coordinationk8sv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: installation.Lease}, Spec: coordinationk8sv1.LeaseSpec{RenewTime: &renewed},
	}
}

// ofReports are the lines about reports, each with its remedy.
func ofReports(printed string) []string {
	var found []string
	lines := strings.Split(printed, "\n")
	for i, line := range lines {
		if strings.Contains(line, "D205") || strings.Contains(line, "D206") || strings.Contains(line, "D302") {
			found = append(found, line)
			if i+1 < len(lines) && strings.Contains(lines[i+1], "►") {
				found = append(found, lines[i+1])
			}
		}
	}
	return found
}

func TestDoctorChecksWhatReportsNeed(t *testing.T) {
	key, err := report.Generate(report.Ed25519, rand.Reader)
	mustSucceed(t, err)
	private, err := key.PrivatePEM()
	mustSucceed(t, err)
	public, err := key.PublicPEM()
	mustSucceed(t, err)
	staging, production := exchanged("staging", "example.com/reports", nil), exchanged("production", "", afterStagingEU)
	signs := []string{"--cluster-name=staging-eu", "--signing-key-secret=signer"}
	trusts := []string{"--trusted-keys-secret=keys"}
	for name, tt := range map[string]struct {
		flags     []string
		objects   []client.Object
		forbidden bool
		want      []string
	}{
		"no Environment of type oci": {nil, []client.Object{exchanged("staging", "", nil)}, false, nil},
		"everything is there": {append(signs, trusts...), []client.Object{
			staging, production, secretWith("signer", map[string][]byte{"identity.key": private}), secretWith("keys", map[string][]byte{"staging-eu.pub": public}),
		}, false, nil},
		"no flags": {nil, []client.Object{staging, production}, false, []string{
			"✗ D205  Deployment shop-prod/rollout-controller: Environment shop-prod/staging has a report to write, and the controller has no --cluster-name or no --signing-key-secret",
			"    ► create a key, and set both flags: kubectl rollouts keys create",
			"✗ D205  Deployment shop-prod/rollout-controller: Environment shop-prod/production reads a report of another cluster, and no keys are trusted",
			"    ► set --trusted-keys-secret, or spec.backend.verify of the Environment",
		}},
		"the feature is off": {[]string{"--feature-gates=EnvironmentReports=false"}, []client.Object{staging}, false, []string{
			"✗ D205  Deployment shop-prod/rollout-controller: there are Environments of type oci, and the feature gate EnvironmentReports is off: nothing is read or written for them",
			"    ► remove it from --feature-gates",
		}},
		"no Secrets": {append(signs, trusts...), []client.Object{staging, production}, false, []string{
			"✗ D206  the keys of --signing-key-secret cannot be used: there is no Secret shop-prod/signer",
			"    ► create a key: kubectl rollouts keys create",
			"✗ D206  the keys of --trusted-keys-secret cannot be used: there is no Secret shop-prod/keys",
			"    ► add the public key that another cluster prints: kubectl rollouts keys public",
		}},
		"keys that cannot be used": {append(signs, trusts...), []client.Object{
			staging, exchanged("production", "", verifiedBy("own")),
			secretWith("signer", map[string][]byte{"identity.key": public}), secretWith("own", map[string][]byte{"staging-eu.pub": public, "b.pub": []byte("x")}),
		}, false, []string{
			"✗ D206  Secret shop-prod/own: the keys of spec.backend.verify of Environment shop-prod/production cannot be used: read b.pub of Secret own: it is not a PUBLIC KEY in PEM",
			"    ► add the public key that another cluster prints: kubectl rollouts keys public",
			`✗ D206  Secret shop-prod/signer: the keys of --signing-key-secret cannot be used: read identity.key of Secret signer: it is a PEM block "PUBLIC KEY", not "PRIVATE KEY": convert it with openssl pkey`,
			"    ► create a key: kubectl rollouts keys create",
		}},
		"no key of the cluster of an upstream": {trusts, []client.Object{
			production, exchanged("canary", "", verifiedBy("own")), exchanged("last", "", verifiedBy("own")),
			secretWith("keys", map[string][]byte{"staging-us.pub": public}), secretWith("own", map[string][]byte{"staging.eu.pub": public}),
		}, false, []string{
			"✗ D206  Environment shop-prod/canary: no key of Secret shop-prod/own may sign for cluster staging-eu of upstream staging",
			"    ► add its public key as staging-eu.pub; print it in that cluster: kubectl rollouts keys public",
			"✗ D206  Environment shop-prod/last: no key of Secret shop-prod/own may sign for cluster staging-eu of upstream staging",
			"    ► add its public key as staging-eu.pub; print it in that cluster: kubectl rollouts keys public",
			"✗ D206  Environment shop-prod/production: no key of Secret shop-prod/keys may sign for cluster staging-eu of upstream staging",
			"    ► add its public key as staging-eu.pub; print it in that cluster: kubectl rollouts keys public",
		}},
		"a key of every cluster": {trusts, []client.Object{
			production, secretWith("keys", map[string][]byte{"any.pub": public, "staging-eu.pub": public}),
		}, false, []string{
			"⚠ D206  Environment shop-prod/production: any.pub of Secret shop-prod/keys may sign for cluster staging-eu of upstream staging, as for every other one",
			"    ► name each key after its cluster, such as staging-eu.pub",
		}},
		"Secrets that may not be read": {append(signs, trusts...), []client.Object{staging, production}, true, []string{
			"not checked:  D206  Secret shop-prod/signer  you may not read the Secret of --signing-key-secret",
			"not checked:  D206  Secret shop-prod/keys  you may not read the Secret of --trusted-keys-secret",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newInMemory(t, append(tt.objects, controllerWith(fixture.Namespace, tt.flags...), held())...)
			if tt.forbidden {
				m.client = withoutSecrets(m.client)
			}
			if diff := cmp.Diff(tt.want, ofReports(m.run(t, "doctor", "-v").Out)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// withoutSecrets is a client of a user who may not read Secrets.
func withoutSecrets(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, is := object.(*corev1.Secret); is {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, key.Name, errors.New("no right to get"))
			}
			return c.Get(ctx, key, object, options...)
		},
	})
}

func TestDoctorSaysWhatToDoAboutReports(t *testing.T) {
	for reason, want := range map[string]string{
		environmentsv1.UpstreamNotTrustedReason: "compare cluster, namespace and rollout of the upstream, and the keys of both clusters: kubectl rollouts keys list   # until it is ready, its Rollout promotes nothing automatically",
		environmentsv1.PublishFailedReason:      "look at the login that spec.backend.secret names, and its right to push; until it is ready, environments in other clusters learn nothing new of this one",
	} {
		e := exchanged("production", "", nil) // for which lint has a warning
		e.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Reason: reason, Message: "it is so", LastTransitionTime: metav1.NewTime(noon)}}
		got := ofReports(newInMemory(t, e, fixture.MakeRollout("shop").Obj(), controllerWith(fixture.Namespace), held()).run(t, "doctor").Out)
		expected := []string{fmt.Sprintf("⚠ D302  Environment shop-prod/production: is not ready (%s): it is so", reason), "    ► " + want}
		if diff := cmp.Diff(expected, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
