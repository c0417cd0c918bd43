// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/object"
	"github.com/fluxrollouts/rollout-controller/internal/live"
)

// cluster answers as an API server does, with pages.
type cluster struct {
	*WithT
	t       *testing.T
	objects []client.Object
	refuse  *apierrors.StatusError // instead of an answer

	mu    sync.Mutex
	asked []string
}

func open(t *testing.T, objects ...client.Object) *cluster {
	t.Helper()
	return &cluster{WithT: NewWithT(t), t: t, objects: objects}
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.asked = append(c.asked, r.URL.String())
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if c.refuse != nil {
		w.WriteHeader(int(c.refuse.ErrStatus.Code))
		_ = json.NewEncoder(w).Encode(c.refuse.ErrStatus)
		return
	}
	path := strings.Split(r.URL.Path, "/namespaces/")
	place := strings.Split(path[len(path)-1], "/") // namespace, resource, and perhaps a name
	if len(place) == 3 {
		c.get(w, place[0], place[2])
		return
	}
	c.list(w, r, place[0])
}

func (c *cluster) get(w http.ResponseWriter, namespace, name string) {
	for _, o := range c.objects {
		if o.GetNamespace() == namespace && o.GetName() == name {
			_ = json.NewEncoder(w).Encode(o)
			return
		}
	}
	w.WriteHeader(http.StatusNotFound)
	_ = json.NewEncoder(w).Encode(apierrors.NewNotFound(schema.GroupResource{}, name).ErrStatus)
}

func (c *cluster) list(w http.ResponseWriter, r *http.Request, namespace string) {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		panic(err)
	}
	found := slices.DeleteFunc(append([]client.Object{}, c.objects...), func(o client.Object) bool {
		return o.GetNamespace() != namespace || !selector.Matches(labels.Set(o.GetLabels()))
	})
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	end, next := from+limit, strconv.Itoa(from+limit)
	if end >= len(found) {
		end, next = len(found), ""
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"metadata": metav1.ListMeta{Continue: next}, "items": found[from:end]})
}

// measure measures in the namespace shop.
func (c *cluster) measure(spec v1alpha1.ObjectSpec) health.Outcome {
	c.t.Helper()
	outcome, _ := c.measureAfter(spec, true)
	return outcome
}

// measureAfter measures when the objects were seen before, or were not.
func (c *cluster) measureAfter(spec v1alpha1.ObjectSpec, seen bool) (outcome health.Outcome, exist bool) {
	c.t.Helper()
	criteria, err := object.Compile(&spec)
	c.Expect(err).NotTo(HaveOccurred())
	server := httptest.NewServer(c)
	defer server.Close()
	objects, err := live.NewObjects(&rest.Config{Host: server.URL}, server.Client())
	c.Expect(err).NotTo(HaveOccurred())
	reader := &object.Reader{Objects: objects, Mapper: mapper(), Now: time.Now}
	return reader.Measure(c.t.Context(), "shop", criteria, seen)
}

func mapper() apimeta.RESTMapper {
	m := apimeta.NewDefaultRESTMapper(nil)
	m.Add(helmv2.GroupVersion.WithKind("HelmRelease"), apimeta.RESTScopeNamespace)
	m.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), apimeta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("Secret"), apimeta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("Node"), apimeta.RESTScopeRoot)
	return m
}

// marker is text of an object that must not be shown.
const marker = "do not show this"

// release returns a HelmRelease with a Ready condition.
func release(name string, ready metav1.ConditionStatus, changes ...func(*helmv2.HelmRelease)) *helmv2.HelmRelease {
	r := &helmv2.HelmRelease{
		TypeMeta:   metav1.TypeMeta{APIVersion: helmv2.GroupVersion.String(), Kind: "HelmRelease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 2, Labels: map[string]string{"app": "shop"}},
		Status: helmv2.HelmReleaseStatus{
			ObservedGeneration: 2,
			Conditions:         []metav1.Condition{{Type: meta.ReadyCondition, Status: ready, Reason: "Any", Message: marker}},
		},
	}
	for _, change := range changes {
		change(r)
	}
	return r
}

func current(name string) client.Object { return release(name, metav1.ConditionTrue) }

func rolling(name string) client.Object {
	return release(name, metav1.ConditionUnknown, func(r *helmv2.HelmRelease) {
		r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: meta.ReconcilingCondition, Status: metav1.ConditionTrue, Message: marker})
	})
}

func failed(name string) client.Object { return release(name, metav1.ConditionFalse, stalled) }

func stalled(r *helmv2.HelmRelease) {
	r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: meta.StalledCondition, Status: metav1.ConditionTrue, Message: marker})
}

func outdated(r *helmv2.HelmRelease) { r.Generation++ }

func doomed(r *helmv2.HelmRelease) { r.DeletionTimestamp = &metav1.Time{Time: time.Now()} }
