// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rights allows an account every request that contains one of the texts. It records the
// requests.
type rights struct {
	authorizationclient.SelfSubjectAccessReviewInterface
	allowed []string
	asked   []authorizationv1.ResourceAttributes
}

func (r *rights) Create(_ context.Context, review *authorizationv1.SelfSubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SelfSubjectAccessReview, error) {
	asked := *review.Spec.ResourceAttributes
	r.asked = append(r.asked, asked)
	review.Status.Allowed = slices.ContainsFunc(r.allowed, func(s string) bool {
		return strings.Contains(asked.Verb+" "+asked.Resource+"/"+asked.Subresource, s)
	})
	return review, nil
}

// The kinds that are served with the CRDs of this project and of Flux.
var (
	kuberik  = []string{"v1alpha1 kuberik.com Rollout RolloutGate HealthCheck RolloutSchedule ClusterRolloutSchedule"}
	flux     = []string{"v1 source.toolkit.fluxcd.io OCIRepository", "v1 kustomize.toolkit.fluxcd.io Kustomization"}
	images   = []string{"v1 image.toolkit.fluxcd.io ImagePolicy"}
	older    = []string{"v1beta2 image.toolkit.fluxcd.io ImagePolicy"}
	ordering = []string{"v1 apps.containerinfra.nl DeploymentCoordination"}
	chains   = []string{"v1alpha1 environments.kuberik.com Environment"}
	recalls  = []string{"v1alpha1 kuberik.com ReleaseQuarantine ClusterReleaseQuarantine"}
	gates    = []string{"v1alpha1 kuberik.com RolloutApproval ClusterRolloutGate"}
	anything = []string{""}
)

func serving(apis ...[]string) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, line := range slices.Concat(apis...) {
		words := strings.Fields(line)
		for _, name := range words[2:] {
			mapper.Add(schema.GroupVersionKind{Version: words[0], Group: words[1], Kind: name}, meta.RESTScopeNamespace)
		}
	}
	return mapper
}

func TestControllersStartThatCan(t *testing.T) {
	releases := []string{"clusterrolloutschedule", "healthcheck", "rollout", "rolloutschedule"}
	for name, tt := range map[string]struct {
		args   []string
		served meta.RESTMapper
		may    []string
		want   []string
		waits  []string
		fails  string
	}{
		"as it is installed by default": {
			served: serving(kuberik, flux, images), may: []string{"list statefulsets", "watch statefulsets", "list pods"}, want: releases,
		},
		"with an older Flux": {served: serving(kuberik, flux, older), want: releases},
		"with everything": {
			served: serving(kuberik, flux, images, ordering, chains, recalls, gates), may: anything,
			want: slices.Sorted(slices.Values(controllers())),
		},
		"with a coordinator's kind, but not its rights": {
			served: serving(kuberik, flux, images, ordering), may: []string{"list deploymentcoordinations", "watch deploymentcoordinations"}, want: releases,
		},
		"before the CRD of Environments is installed": {
			served: serving(kuberik, flux, images), may: []string{"environments"}, want: releases, waits: []string{"environment"},
		},
		"with it": {
			served: serving(kuberik, flux, images, chains), may: []string{"environments"}, want: append([]string{"clusterrolloutschedule", "environment"}, releases[1:]...),
		},
		"with it, but without the rights of this version": {served: serving(kuberik, flux, images, chains), want: releases},
		"with it, and with nobody to read what Environments record": {
			served: serving(kuberik, flux, ordering, chains), may: []string{"deploy", "environments"}, want: []string{"deploymentcoordination"},
			waits: []string{"rollout", "rolloutschedule", "clusterrolloutschedule", "healthcheck", "environment"},
		},
		"before the CRDs of quarantines are installed": {
			served: serving(kuberik, flux, images), may: []string{"quarantines"}, want: releases, waits: []string{"quarantine"},
		},
		"with one of them": {
			served: serving(kuberik, flux, images, []string{"v1alpha1 kuberik.com ReleaseQuarantine"}), may: []string{"quarantines"},
			want: releases, waits: []string{"quarantine"},
		},
		"with both": {
			served: serving(kuberik, flux, images, recalls), may: []string{"quarantines"},
			want: []string{"clusterrolloutschedule", "healthcheck", "quarantine", "rollout", "rolloutschedule"},
		},
		"with both, but without the rights of this version": {served: serving(kuberik, flux, images, recalls), want: releases},
		"with both, in one namespace, whose account may not write recalls": {
			args: []string{"--watch-all-namespaces=false"}, served: serving(kuberik, flux, images, recalls),
			may:  []string{"list releasequarantines", "watch releasequarantines", "patch releasequarantines/status", "delete releasequarantines"},
			want: []string{"healthcheck", "quarantine", "rollout", "rolloutschedule"},
		},
		"with both, in all namespaces, whose account may not write recalls": {
			served: serving(kuberik, flux, images, recalls),
			may:    []string{"list ", "watch ", "patch releasequarantines/status", "delete releasequarantines"},
			want:   releases,
		},
		"with both, and with nobody to report failures": {
			served: serving(kuberik, flux, ordering, recalls), may: []string{"deploy", "quarantines"}, want: []string{"deploymentcoordination"},
			waits: []string{"rollout", "rolloutschedule", "clusterrolloutschedule", "healthcheck", "quarantine"},
		},
		"before the CRDs of approvals are installed": {
			served: serving(kuberik, flux, images), may: []string{"clusterrolloutgates"}, want: releases, waits: []string{"clusterrolloutgate"},
		},
		"with those of approvals": {
			served: serving(kuberik, flux, images, gates), may: []string{"clusterrolloutgates"}, want: append([]string{"clusterrolloutgate"}, releases...),
		},
		"with those of approvals, in one namespace": {
			args: []string{"--watch-all-namespaces=false"}, served: serving(kuberik, flux, images, gates), may: []string{"clusterrolloutgates"},
			want: releases[1:],
		},
		"quarantines by name, without their kinds": {
			args: []string{"--controllers=*,quarantine"}, served: serving(kuberik, flux, images), may: anything,
			fails: "the controller quarantine cannot start: the API server serves no ReleaseQuarantine.kuberik.com: install the CRDs of config/crd",
		},
		"with rights to pods alone": {
			served: serving(kuberik, flux, images), may: []string{"statefulsets", "pods"}, want: append(releases, "statefulsetrollout"),
		},
		"with a coordinator's rights, but not its kind": {
			served: serving(kuberik, flux, images), may: []string{"deploy"}, want: releases, waits: []string{"deploymentcoordination"},
		},
		"a coordinator by name, without rights": {
			args: []string{"--controllers=deploymentcoordination"}, served: serving(ordering), want: []string{"deploymentcoordination"},
		},
		"a coordinator by name, without its kind": {
			args: []string{"--controllers=*,deploymentcoordination"}, served: serving(kuberik, flux, images), may: anything,
			fails: "the controller deploymentcoordination cannot start: the API server serves no DeploymentCoordination.apps.containerinfra.nl: install",
		},
		"StatefulSets by name, where nothing is": {
			args: []string{"--controllers=statefulsetrollout"}, served: serving(), want: []string{"statefulsetrollout"},
		},
		"without Flux, next to a coordinator": {
			served: serving(kuberik, ordering), may: []string{"deploy"}, want: []string{"deploymentcoordination"},
			waits: []string{"rollout", "rolloutschedule", "clusterrolloutschedule", "healthcheck"},
		},
		"without the reader of images, next to a coordinator": {
			served: serving(kuberik, flux, ordering), may: []string{"deploy"}, want: []string{"deploymentcoordination"},
			waits: []string{"rollout", "rolloutschedule", "clusterrolloutschedule", "healthcheck"},
		},
		"without the reader of images": {
			served: serving(kuberik, flux),
			fails:  "no controller can start: rollout: the API server serves no ImagePolicy.image.toolkit.fluxcd.io: install Flux's image-reflector-controller",
		},
		"without any CRD": {
			served: serving(), fails: "rollout: the API server serves no Rollout.kuberik.com: install the CRDs of config/crd",
		},
		"health alone needs no reader of images": {
			args: []string{"--controllers=healthcheck"}, served: serving(kuberik, flux), want: []string{"healthcheck"},
		},
		"but it needs Flux": {
			args: []string{"--controllers=healthcheck"}, served: serving(kuberik), fails: "serves no OCIRepository.source.toolkit.fluxcd.io: install Flux",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, _, err := parse(t, "apps", tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			starts, waiting, err := o.preflight(t.Context(), cluster{mapper: tt.served, access: &rights{allowed: tt.may}})
			if diff := cmp.Diff(tt.want, slices.Sorted(maps.Keys(starts))); diff != "" {
				t.Errorf("what starts (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.waits, waiting); diff != "" {
				t.Errorf("what waits for a kind (-want +got):\n%s", diff)
			}
			if (err != nil) != (tt.fails != "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("the error is %v, want it to say %q", err, tt.fails)
			}
		})
	}
}

// The watched namespaces decide where the rights must be. No namespace can give the rights
// to a kind without one.
func TestRightsAreAskedForWhereTheControllerWouldAct(t *testing.T) {
	for namespace, args := range map[string][]string{
		"":     nil,
		"apps": {"--watch-all-namespaces=false"},
		"loki": {"--controllers=*", "-kubernetes.namespace=loki"},
	} {
		o, _, err := parse(t, "apps", args...)
		if err != nil {
			t.Fatal(err)
		}
		account := &rights{allowed: anything}
		if _, _, err := o.preflight(t.Context(), cluster{mapper: serving(kuberik, flux, images, ordering, chains, recalls), access: account}); err != nil {
			t.Fatal(err)
		}
		if len(account.asked) == 0 {
			t.Fatal("no right was asked for")
		}
		for _, asked := range account.asked {
			want := namespace
			if asked.Resource == clusterQuarantines {
				want = ""
			}
			if asked.Namespace != want {
				t.Errorf("%v: asked for %+v, want it in namespace %q", args, asked, want)
			}
		}
	}
}
