// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/internal/report"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
	"github.com/fluxrollouts/rollout-controller/test/fixture/loopback"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	prod    = types.NamespacedName{Namespace: fixture.Namespace, Name: "prod"}
	staging = Upstream{Environment: prod, Name: "staging"}

	errAway = errors.New("no route to host")
)

// trustedSecret is the Secret with the keys that are trusted.
var trustedSecret = types.NamespacedName{Namespace: "controller", Name: "promotion-keys"}

// key returns a pair of keys.
func key(tb testing.TB, number byte) (report.SigningKey, []byte) {
	tb.Helper()
	private := ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-1), number))
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		tb.Fatal(err)
	}
	signing, err := report.ParseSigningKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err != nil {
		tb.Fatal(err)
	}
	if der, err = x509.MarshalPKIXPublicKey(private.Public()); err != nil {
		tb.Fatal(err)
	}
	return signing, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// bus is a registry, the cluster of the environment prod, and what the Store does there.
type bus struct {
	*WithT
	*Store
	t        *testing.T
	clock    fixture.QueueClock
	cluster  client.Client
	registry *controlplane.Registry
	reports  *registry.Reports
	signing  report.SigningKey

	mu     sync.Mutex
	refuse func(registry.Place) error // instead of the registry
	times  []time.Duration            // of the fetches, since noon
	woken  []string
	said   []string
}

func openBus(t *testing.T, objects ...client.Object) *bus {
	t.Helper()
	b := &bus{WithT: NewWithT(t), t: t, clock: fixture.NewQueueClock()}
	var err error
	b.registry, err = controlplane.OpenRegistry()
	b.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = b.registry.GoAway() })
	signing, public := key(t, 1)
	b.signing = signing
	scheme := runtime.NewScheme()
	b.Expect(errors.Join(environmentsv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme), imagev1.AddToScheme(scheme))).To(Succeed())
	b.cluster = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&environmentsv1.Environment{}).WithObjects(append(objects,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: trustedSecret.Namespace, Name: trustedSecret.Name}, Data: map[string][]byte{"staging-eu.pub": public, "staging-us.pub": public}},
		b.prod().Obj())...).Build()
	reader, err := registry.NewReader(b.cluster, b.cluster, loopback.Guard())
	b.Expect(err).NotTo(HaveOccurred())
	b.reports = registry.NewReports(reader)
	b.open()
	return b
}

// open starts a process, which remembers nothing.
func (b *bus) open() {
	b.Store = newStore(b.cluster, b.pullCounted, NewKeys(b.cluster, trustedSecret), NewPlace(b.cluster), funcr.New(b.heard, funcr.Options{}), b.clock)
	b.t.Cleanup(b.queue.ShutDown)
	b.wakeEnvironment = func(e types.NamespacedName) { b.wakes("Environment " + e.Name) }
	b.wakeRollout = func(r types.NamespacedName) { b.wakes("Rollout " + r.Name) }
}

func (b *bus) wakes(object string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.woken = append(b.woken, object)
}

func (b *bus) heard(_, line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said = append(b.said, line)
}

func (b *bus) pullCounted(ctx context.Context, place registry.Place, known string) (registry.Stored, error) {
	b.mu.Lock()
	b.times = append(b.times, b.clock.Since(fixture.Noon))
	refuse := b.refuse
	b.mu.Unlock()
	if refuse != nil {
		if err := refuse(place); err != nil {
			return registry.Stored{}, err
		}
	}
	return b.reports.Pull(ctx, place, known)
}

// prod returns the Environment prod, which comes after staging in another cluster.
func (b *bus) prod() *fixture.EnvironmentBuilder {
	return fixture.MakeEnvironment("prod").After("staging", fixture.From("shop"), func(u *environmentsv1.Upstream) {
		u.Rollout, u.Repository, u.Cluster = "web", b.registry.Host()+"/promotions/staging", "staging-eu"
	}).With(func(spec *environmentsv1.EnvironmentSpec) {
		spec.Backend = environmentsv1.Backend{Type: environmentsv1.BackendOCI, Insecure: true}
	})
}

// change changes the Environment, as a user does.
func (b *bus) change(change func(*environmentsv1.Environment)) {
	e := &environmentsv1.Environment{}
	b.Expect(b.cluster.Get(b.t.Context(), prod, e)).To(Succeed())
	change(e)
	e.Generation++
	b.Expect(b.cluster.Update(b.t.Context(), e)).To(Succeed())
}

// record sets the sequence in the status, signed by the present key.
func (b *bus) record(sequence int64) { b.recordBy(map[string]int64{b.signing.String(): sequence}) }

// recordBy sets the sequences in the status, by key.
func (b *bus) recordBy(highest map[string]int64, changes ...func(*environmentsv1.UpstreamStatus)) {
	e := &environmentsv1.Environment{}
	b.Expect(b.cluster.Get(b.t.Context(), prod, e)).To(Succeed())
	source := environment.SourceOf(e, e.GetUpstreams()[0])
	e.Status.Upstreams = []environmentsv1.UpstreamStatus{{Environment: "staging", Source: source}}
	u := &e.Status.Upstreams[0]
	for key, sequence := range highest {
		u.Sequence, u.Keys = max(u.Sequence, sequence), append(u.Keys, environmentsv1.KeySequence{Key: key, Sequence: sequence})
	}
	for _, change := range changes {
		change(u)
	}
	b.Expect(b.cluster.Status().Update(b.t.Context(), e)).To(Succeed())
}

// trust replaces the trusted keys.
func (b *bus) trust(numbers ...byte) {
	secret := &corev1.Secret{}
	b.Expect(b.cluster.Get(b.t.Context(), trustedSecret, secret)).To(Succeed())
	secret.Data = map[string][]byte{}
	for _, number := range numbers {
		_, public := key(b.t, number)
		secret.Data["any."+string('a'+number)+".pub"] = public
	}
	b.Expect(b.cluster.Update(b.t.Context(), secret)).To(Succeed())
}

// said returns a report of staging.
func said(sequence int64, releases ...environmentsv1.Release) report.Report {
	for i := range releases {
		releases[i].Current = i == 0
	}
	return report.Report{
		Source:   report.Source{Application: "shop", Environment: "staging", Cluster: "staging-eu", Namespace: "shop", Rollout: "web"},
		Sequence: sequence, Created: metav1.NewTime(fixture.Noon), Releases: releases,
	}
}

func deploying(tag string) environmentsv1.Release {
	return environmentsv1.Release{Tag: tag, State: v1alpha1.BakeDeploying}
}

func baking(tag string, until time.Time) environmentsv1.Release {
	end := metav1.NewTime(until)
	return environmentsv1.Release{Tag: tag, State: v1alpha1.BakeInProgress, Until: &end}
}

func proven(tag string) environmentsv1.Release {
	return environmentsv1.Release{Tag: tag, State: v1alpha1.BakeSucceeded, Evidence: environmentsv1.EvidenceBaked}
}

// publish stores a report, as staging does.
func (b *bus) publish(r report.Report) {
	envelope, err := report.Sign(r, b.signing)
	b.Expect(err).NotTo(HaveOccurred())
	b.store(envelope)
}

// store stores anything in the place of the report, with connections of its own.
func (b *bus) store(envelope []byte) {
	reader, err := registry.NewReader(b.cluster, b.cluster, loopback.Guard())
	b.Expect(err).NotTo(HaveOccurred())
	_, err = registry.NewReports(reader).Push(b.t.Context(), b.there(), envelope, "")
	b.Expect(err).NotTo(HaveOccurred())
}

func (b *bus) there() registry.Place {
	return registry.Place{Repository: b.registry.Host() + "/promotions/staging", Tag: "shop.web", Insecure: true, Namespace: fixture.Namespace}
}

// fails makes fetches fail without a request; with nil, they are made again.
func (b *bus) fails(refuse func(registry.Place) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuse = refuse
}

// pass lets time pass. Looks are made when they are due, one after the other.
func (b *bus) pass(d time.Duration) {
	end := b.clock.Now().Add(d)
	for u, at, ok := b.nextLook(); ok && !at.After(end); u, at, ok = b.nextLook() {
		if at.After(b.clock.Now()) {
			b.clock.SetTime(at)
		}
		b.serve(b.t.Context(), u)
	}
	b.clock.SetTime(end)
}

func (b *bus) nextLook() (next Upstream, first time.Time, found bool) {
	b.Store.mu.Lock()
	defer b.Store.mu.Unlock()
	for u, k := range b.upstreams {
		if at, wanted := k.next(); wanted && (!found || at.Before(first)) {
			next, first, found = u, at, true
		}
	}
	return next, first, found
}

// run starts the workers.
func (b *bus) run() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.Start(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		b.Expect(<-ended).To(Succeed())
	})
}

// later advances the clock, but not while a fetch is planned: for the queue, the time until
// then is a duration.
func (b *bus) later(d time.Duration) {
	b.Store.mu.Lock()
	defer b.Store.mu.Unlock()
	b.clock.Step(d)
}

// fetches returns when it was fetched since the last call.
func (b *bus) fetches() []time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	times := b.times
	b.times = nil
	return times
}

// count returns how often it was fetched since the last call of fetches.
func (b *bus) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.times)
}

// calls returns what was woken since the last call.
func (b *bus) calls() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	woken := b.woken
	b.woken = nil
	slices.Sort(woken)
	return woken
}

func (b *bus) complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.said)
}

func (b *bus) last() Result {
	result, ok := b.Last(staging)
	b.Expect(ok).To(BeTrue(), "it was fetched")
	return result
}

// problem returns the problem, which must not change with another fetch.
func (b *bus) problem() string {
	problem := b.last().Problem
	b.Expect(problem).NotTo(BeNil())
	return problem.Reason + ": " + problem.Message
}

var (
	waits = []Lookup{{Upstream: staging}}
	none  []Lookup
)

func at(since time.Duration) []Lookup {
	return []Lookup{{Upstream: staging, At: fixture.Noon.Add(since)}}
}
