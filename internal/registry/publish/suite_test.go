// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/internal/report"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
	"github.com/fluxrollouts/rollout-controller/test/fixture/loopback"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a cluster with Environments, and the registry of their reports.
type site struct {
	*WithT
	*Publisher
	t            *testing.T
	clock        fixture.QueueClock
	registry     *controlplane.Registry
	server       *httptest.Server
	environments map[types.NamespacedName]*environment
	identity     Identity
	stop         func()

	mu         sync.Mutex
	handler    http.Handler // of the server; the registry if it is nil
	key        report.SigningKey
	noKey      *verdict.Problem
	clusterUID string
	asked      []string // requests to the server
	places     int      // attempts that came so far
	said       []string
	woken      []types.NamespacedName
}

// environment is one that the test plays the reconciler of.
type environment struct {
	*environmentsv1.Environment
	releases []environmentsv1.Release
}

func open(t *testing.T) *site {
	t.Helper()
	s := &site{
		WithT: NewWithT(t), t: t, clock: fixture.NewQueueClock(), clusterUID: "5f2c", key: keyOf(t, 1),
		environments: map[types.NamespacedName]*environment{},
	}
	s.identity = Identity{Cluster: "staging-eu", UID: s.readUID}
	content, err := controlplane.OpenRegistry()
	s.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = content.GoAway() })
	s.registry = content
	s.server = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(s.server.Close)
	s.start()
	return s
}

// start begins a process, which remembers nothing.
func (s *site) start() {
	s.t.Helper()
	empty := fake.NewClientBuilder().Build()
	reader, err := registry.NewReader(empty, empty, loopback.Guard())
	s.Expect(err).NotTo(HaveOccurred())
	reports := registry.NewReports(reader)
	s.Publisher = newPublisher(empty, reports.Push, reports.Pull, s.placeOf, s.signingKey, s.identity, funcr.New(s.note, funcr.Options{}), s.clock)
	s.wake = func(key types.NamespacedName) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.woken = append(s.woken, key)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func(p *Publisher) { ended <- p.Start(ctx) }(s.Publisher)
	s.stop = sync.OnceFunc(func() {
		cancel()
		s.Expect(<-ended).To(Succeed())
		http.DefaultClient.CloseIdleConnections()
	})
	s.t.Cleanup(s.stop)
}

// restart ends the process and begins another one.
func (s *site) restart() {
	s.t.Helper()
	s.stop()
	s.start()
}

func (s *site) answer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.Method)
	handler := s.handler
	s.mu.Unlock()
	if handler == nil {
		handler = s.registry
	}
	handler.ServeHTTP(w, r)
}

func (s *site) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// requests returns how many requests were sent since the last call.
func (s *site) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.asked)
	s.asked = nil
	return n
}

func (s *site) attempts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places
}

// wakes returns how often an Environment was woken.
func (s *site) wakes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.woken)
}

func (s *site) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.said)
}

func (s *site) note(_, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, line)
}

func (s *site) placeOf(_ context.Context, _ client.Reader, e *environmentsv1.Environment, repository, tag string) (registry.Place, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places++
	return registry.Place{Repository: repository, Tag: tag, Insecure: true, Namespace: e.Namespace}, nil
}

func (s *site) signingKey(context.Context) (report.SigningKey, *verdict.Problem, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key, s.noKey, nil
}

var errAPI = errors.New("the API server is away")

func (s *site) readUID(context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clusterUID == "broken" {
		return "", errAPI
	}
	return s.clusterUID, nil
}

func (s *site) host() string { return strings.TrimPrefix(s.server.URL, "http://") }

// add creates the Environment staging of a Rollout in a namespace.
func (s *site) add(namespace, rollout string) *environment {
	e := fixture.MakeEnvironment("staging").InNamespace(namespace).Of(rollout).After("dev").With(func(spec *environmentsv1.EnvironmentSpec) {
		spec.Backend = environmentsv1.Backend{Type: environmentsv1.BackendOCI, Project: s.host() + "/promotions/staging", Insecure: true}
	}).Obj()
	e.Name = rollout
	added := &environment{Environment: e}
	s.environments[client.ObjectKeyFromObject(e)] = added
	return added
}

// change changes the spec, as a user does.
func (e *environment) change(change func(*environmentsv1.EnvironmentSpec)) {
	change(&e.Spec)
	e.Generation++
}

// says sets what it says. The first release is current.
func (e *environment) says(releases ...environmentsv1.Release) {
	e.releases = slices.Clone(releases)
	for i := range e.releases {
		e.releases[i].Current = i == 0
	}
}

func releaseIn(state v1alpha1.BakeStatus, tag string) environmentsv1.Release {
	return environmentsv1.Release{Tag: tag, State: state, Since: &metav1.Time{Time: fixture.Noon}}
}

func deploying(tag string) environmentsv1.Release { return releaseIn(v1alpha1.BakeDeploying, tag) }

// healthy returns a release that has been healthy since a time.
func healthy(state v1alpha1.BakeStatus, tag string, since time.Time) environmentsv1.Release {
	r := releaseIn(state, tag)
	r.HealthySince, r.Soaked = &metav1.Time{Time: since}, &metav1.Duration{}
	return r
}

// pass is one pass of the reconciler, which stores what was published.
func (s *site) pass(e *environment) Publication {
	published := s.Publish(e.Environment, e.releases)
	if published.Stored != nil {
		e.Status.Report = published.Stored
	}
	return published
}

// settles passes until it is known what has become of the report.
func (s *site) settles(e *environment) Publication {
	s.t.Helper()
	var last Publication
	s.Eventually(func() bool {
		last = s.pass(e)
		return last.Pending
	}).Should(BeFalse())
	return last
}

// published passes until the report is stored, and returns what is in the registry.
func (s *site) published(e *environment) report.Report {
	s.t.Helper()
	last := s.settles(e)
	s.Expect(last.Problem).To(BeNil())
	r, err := report.Verify(s.stored(e), s.key.Trusted(), report.Expected{Source: s.sourceOf(e)})
	s.Expect(err).NotTo(HaveOccurred())
	return r
}

func (s *site) sourceOf(e *environment) report.Source {
	return report.Source{Application: "shop", Environment: "staging", Cluster: s.identity.Cluster, Namespace: e.Namespace, Rollout: e.Spec.RolloutRef.Name}
}

// place is where another process reaches the report, past the server that counts.
func (s *site) placeIn(e *environment) registry.Place {
	_, path, _ := strings.Cut(e.Spec.Backend.Project, "/")
	return registry.Place{Repository: s.registry.Host() + "/" + path, Tag: report.Tag(e.Namespace, e.Spec.RolloutRef.Name), Insecure: true, Namespace: e.Namespace}
}

func (s *site) others() *registry.Reports {
	empty := fake.NewClientBuilder().Build()
	reader, err := registry.NewReader(empty, empty, loopback.Guard())
	s.Expect(err).NotTo(HaveOccurred())
	return registry.NewReports(reader)
}

func (s *site) stored(e *environment) []byte {
	s.t.Helper()
	found, err := s.others().Pull(s.t.Context(), s.placeIn(e), "")
	s.Expect(err).NotTo(HaveOccurred())
	return found.Envelope
}

// put stores anything in the place of a report.
func (s *site) put(e *environment, envelope []byte) {
	s.t.Helper()
	_, err := s.others().Push(s.t.Context(), s.placeIn(e), envelope, "")
	s.Expect(err).NotTo(HaveOccurred())
}

// later advances the clock, but not while an attempt is planned: for the queue, the time
// until then is a duration.
func (s *site) later(d time.Duration) {
	s.Publisher.mu.Lock()
	defer s.Publisher.mu.Unlock()
	s.clock.Step(d)
}

// rests checks that nothing more is requested.
func (s *site) rests() {
	s.t.Helper()
	before := s.attempts()
	s.Consistently(s.attempts, 50*time.Millisecond).Should(Equal(before))
	s.Expect(s.requests()).To(BeZero())
}

func keyOf(t *testing.T, number byte) report.SigningKey {
	t.Helper()
	key, err := report.ParseSigningKey(pemOf(t, number))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func pemOf(t *testing.T, number byte) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{number}, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}
