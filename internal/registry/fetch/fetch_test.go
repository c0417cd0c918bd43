// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/internal/report"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// reason and message of an upstream, with <place> for where its report is.
type complaint struct{ reason, message string }

// TestProblemsOfAnUpstream: after each fetch, the message is the same.
func TestProblemsOfAnUpstream(t *testing.T) {
	const unreadable, untrusted = environmentsv1.UpstreamUnreadableReason, environmentsv1.UpstreamNotTrustedReason
	changed := func(b *bus, change func(*dsse.Envelope)) {
		text, err := report.Sign(said(1), b.signing)
		b.Expect(err).NotTo(HaveOccurred())
		envelope := &dsse.Envelope{}
		b.Expect(json.Unmarshal(text, envelope)).To(Succeed())
		change(envelope)
		text, err = json.Marshal(envelope)
		b.Expect(err).NotTo(HaveOccurred())
		b.store(text)
	}
	fails := func(err error) func(*bus) {
		return func(b *bus) {
			b.fails(func(place registry.Place) error { return fmt.Errorf("read the report %s: %w", place, err) })
		}
	}
	for name, test := range map[string]struct {
		arrange func(*bus)
		want    complaint
	}{
		"nothing published": {func(*bus) {}, complaint{unreadable,
			"there is no report of staging at <place>: its Environment publishes it there with backend.type oci and backend.project <repository>"}},
		"not signed": {func(b *bus) { changed(b, func(e *dsse.Envelope) { e.Signatures = nil }) }, complaint{untrusted,
			"what staging says cannot be verified: it is not signed: find out who writes to <place>"}},
		"signed by another key": {func(b *bus) { b.trust(2); b.publish(said(1)) }, complaint{untrusted,
			"what staging says cannot be verified: no key of Secret controller/promotion-keys for cluster staging-eu signed it: " +
				"add the public key of cluster staging-eu as staging-eu.pub, or find out who else writes to <place>"}},
		"of another cluster": {func(b *bus) { r := said(1); r.Cluster = "staging-us"; b.publish(r) }, complaint{untrusted,
			`what staging says cannot be verified: it is about cluster "staging-us", not "staging-eu": correct spec.upstreams, or find out who writes to <place>`}},
		"of another Rollout": {func(b *bus) { r := said(1); r.Rollout = "api"; b.publish(r) }, complaint{untrusted,
			`what staging says cannot be verified: it is about Rollout "api", not "web": correct spec.upstreams, or find out who writes to <place>`}},
		"too large": {fails(fmt.Errorf("%w: its layer has 66560 bytes, and only 65536 are read", registry.ErrNotReport)), complaint{unreadable,
			"the report of staging cannot be read: it is not a report: its layer has 66560 bytes, and only 65536 are read"}},
		"older than the one before": {func(b *bus) { b.record(9); b.publish(said(8)) }, complaint{untrusted,
			"what staging says cannot be verified: its sequence 8 is lower than 9, which was verified before: the next report of staging counts again"}},
		"not an envelope": {func(b *bus) { b.store([]byte("<html>")) }, complaint{unreadable,
			"the report of staging cannot be read: it is not a signed envelope"}},
		"no trusted keys": {func(b *bus) { b.trust() }, complaint{environmentsv1.NoTrustedKeysReason,
			"there are no trusted keys: Secret controller/promotion-keys has no public key: add one in PEM as CLUSTER.pub"}},
		"after each other": {func(b *bus) {
			r := said(1)
			r.Upstreams = []environmentsv1.Relationship{{Environment: "prod", Type: environmentsv1.After}}
			b.publish(r)
		}, complaint{environmentsv1.UpstreamCycleReason,
			"Environment prod comes after itself (prod after staging after prod, by the report of staging): remove one of these upstreams"}},
		"registry away": {func(b *bus) { b.Expect(b.registry.GoAway()).To(Succeed()) }, complaint{unreadable,
			"the report of staging cannot be read: the registry cannot be reached"}},
		"login needed": {func(b *bus) { b.registry.RequireLogin("flux", "secret") }, complaint{unreadable,
			"the report of staging cannot be read: the registry answers 401 Unauthorized: correct the login, or let it read this repository; see spec.backend.secret"}},
		"login missing": {func(b *bus) {
			b.change(func(e *environmentsv1.Environment) { e.Spec.Backend.Secret = "login" })
		}, complaint{unreadable,
			`the report of staging cannot be read: read Secret shop-prod/login: secrets "login" not found`}},
		"no name": {func(b *bus) {
			b.change(func(e *environmentsv1.Environment) { e.Spec.Upstreams[0].Repository = "No name" })
		}, complaint{unreadable, "the report of staging cannot be read: cannot be asked for: repository can only contain the characters `abcdefghijklmnopqrstuvwxyz0123456789_-./`: No name"}},
		"busy": {fails(&registry.Busy{Status: 429, After: 3 * time.Second}), complaint{unreadable,
			"the report of staging cannot be read: the registry asks to wait: 429 Too Many Requests"}},
		"too many requests of our own": {fails(registry.ErrLimit), complaint{unreadable,
			"the report of staging cannot be read: more requests to the registry wait than --registry-qps and --registry-burst allow"}},
		"no answer":    {fails(context.DeadlineExceeded), complaint{unreadable, "the report of staging cannot be read: the registry does not answer in time"}},
		"unknown name": {fails(&net.DNSError{Name: "registry.example.com"}), complaint{unreadable, "the report of staging cannot be read: the name of the registry cannot be resolved"}},
		"anything else": {fails(errors.New("request 4711 failed")), complaint{unreadable,
			"the report of staging cannot be read: the request failed: see the log of the controller"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := openBus(t)
			test.arrange(b)
			want := strings.ReplaceAll(test.want.message, "<repository>", b.there().Repository)
			want = test.want.reason + ": " + strings.ReplaceAll(want, "<place>", b.there().String())
			b.Once(staging)
			b.pass(0)
			b.Expect(b.problem()).To(Equal(want))
			b.pass(time.Hour)
			b.Expect(b.problem()).To(Equal(want))
			b.Expect(b.last().At.IsZero()).To(Equal(test.want.reason != environmentsv1.UpstreamCycleReason))
			b.Expect(b.complaints()).To(HaveLen(1))
		})
	}
}

func TestReportOfBeforeIsKeptWithTheProblem(t *testing.T) {
	b := openBus(t)
	b.publish(said(1, deploying("1.4.0")))
	b.Ask(prod, waits)
	b.pass(4*time.Minute + 30*time.Second)
	b.calls()
	b.Expect(b.registry.GoAway()).To(Succeed())
	b.pass(3 * time.Hour)
	b.Expect(b.problem()).To(Equal("UpstreamUnreadable: the report of staging cannot be read: the registry cannot be reached (last read at 12:04 UTC)"))
	b.Expect(b.last().Report.Sequence).To(BeEquivalentTo(1))
	b.Expect(b.last().At).To(Equal(fixture.Noon.Add(4 * time.Minute)))
	b.Expect(b.calls()).To(Equal([]string{"Environment prod"}), "the problem is a new one only once")
	b.Expect(b.registry.ComeBack()).To(Succeed())
	b.pass(10 * time.Minute)
	b.Expect(b.last().Problem).To(BeNil())
	b.Expect(b.calls()).To(Equal([]string{"Environment prod"}))
}

func TestKeyIsReplaced(t *testing.T) {
	b := openBus(t)
	b.publish(said(1, deploying("1.4.0")))
	b.Ask(prod, waits)
	b.pass(0)
	b.trust(1, 2)
	b.pass(time.Minute)
	b.Expect(b.last().Problem).To(BeNil())
	b.Expect(b.calls()).To(HaveLen(1))

	b.trust(2)
	b.pass(time.Minute)
	b.Expect(b.problem()).To(HavePrefix("UpstreamNotTrusted: "), "the content is what it was")
	b.Expect(b.last().Report.Sequence).To(BeEquivalentTo(1))
	b.Expect(b.last().At).To(Equal(fixture.Noon.Add(time.Minute)))
	b.Expect(b.calls()).To(HaveLen(1))

	b.signing, _ = key(t, 2)
	b.publish(said(2, deploying("1.4.0")))
	b.pass(time.Minute)
	b.Expect(b.last().Problem).To(BeNil())
	b.Expect(b.last().Report.Sequence).To(BeEquivalentTo(2))
}

// TestNumberOfARemovedKeyDoesNotCount: it was stolen, and has signed a high number.
func TestNumberOfARemovedKeyDoesNotCount(t *testing.T) {
	b := openBus(t)
	first, _ := key(t, 1)
	second, _ := key(t, 2)
	b.trust(1, 2)
	b.recordBy(map[string]int64{first.String(): 900, second.String(): 7})
	b.signing = second
	b.publish(said(8, proven("1.4.0")))
	b.Ask(prod, waits)
	b.pass(0)
	b.Expect(b.problem()).To(ContainSubstring("its sequence 8 is lower than 900"))
	b.trust(2)
	b.pass(10 * time.Minute)
	b.Expect(b.last().Problem).To(BeNil())
	b.publish(said(6, proven("1.3.0")))
	b.pass(10 * time.Minute)
	b.Expect(b.problem()).To(ContainSubstring("its sequence 6 is lower than 8"))
	b.open()
	b.Ask(prod, waits)
	b.pass(0)
	b.Expect(b.problem()).To(ContainSubstring("its sequence 6 is lower than 7"), "which the status has of that key")
}

func TestNumberFarInTheFutureIsRefused(t *testing.T) {
	b := openBus(t)
	b.publish(said(fixture.Noon.AddDate(1, 0, 1).Unix(), proven("1.4.0")))
	b.Ask(prod, waits)
	b.pass(0)
	b.Expect(b.problem()).To(HavePrefix("UpstreamNotTrusted: what staging says cannot be verified: its sequence 1"))
	b.Expect(b.problem()).To(HaveSuffix(" is far in the future: correct the clock of cluster staging-eu; if that was never wrong, replace its key"))
	b.publish(said(fixture.Noon.AddDate(1, 0, -1).Unix(), proven("1.4.0")))
	b.pass(10 * time.Minute)
	b.Expect(b.last().Problem).To(BeNil())
}

func TestSequenceSurvivesARestart(t *testing.T) {
	b := openBus(t)
	b.publish(said(7, proven("1.4.0")))
	b.Once(staging)
	b.pass(0)
	b.record(7)
	b.open()
	b.publish(said(6, proven("1.3.0")))
	b.Once(staging)
	b.pass(0)
	b.Expect(b.problem()).To(ContainSubstring("its sequence 6 is lower than 7"))
	b.Expect(b.last().Report).To(Equal(report.Report{}))
	b.publish(said(7, proven("1.4.0")))
	b.pass(time.Minute)
	b.Expect(b.last().Problem).To(BeNil())
}

// TestOneReplicaOfTheRegistryIsBehind: which one answers is chance.
func TestOneReplicaOfTheRegistryIsBehind(t *testing.T) {
	b := openBus(t)
	b.publish(said(7, proven("1.4.0")))
	b.Ask(prod, waits)
	b.pass(0)
	b.publish(said(6, proven("1.3.0")))
	b.pass(time.Minute)
	b.Expect(b.problem()).To(Equal("UpstreamUnreadable: the report of staging cannot be read: " +
		"the registry still returns an older report (last read at 12:00 UTC)"))
	b.publish(said(7, proven("1.4.0")))
	b.pass(time.Minute)
	b.Expect(b.last().Problem).To(BeNil())
	b.publish(said(6, proven("1.3.0")))
	b.pass(10 * time.Minute)
	b.Expect(b.problem()).To(HavePrefix("UpstreamNotTrusted: "), "that is longer than replicas take")
}

func TestReplicaIsBehindAfterARestart(t *testing.T) {
	b := openBus(t)
	b.recordBy(map[string]int64{b.signing.String(): 7}, func(u *environmentsv1.UpstreamStatus) {
		u.VerifiedTime = &metav1.Time{Time: fixture.Noon.Add(-time.Minute)}
	})
	b.publish(said(6, proven("1.3.0")))
	b.Ask(prod, waits)
	b.pass(0)
	b.Expect(b.problem()).To(Equal("UpstreamUnreadable: the report of staging cannot be read: the registry still returns an older report"))
}

// TestSequenceOfAnotherProcessCounts: another one was the leader for a while.
func TestSequenceOfAnotherProcessCounts(t *testing.T) {
	b := openBus(t)
	b.publish(said(7, proven("1.4.0")))
	b.Ask(prod, waits)
	b.pass(0)
	b.record(8)
	b.pass(time.Minute)
	b.Expect(b.problem()).To(ContainSubstring("its sequence 7 is lower than 8"), "although its digest is known")
}

func TestUpstreamMovesToAnotherCluster(t *testing.T) {
	b := openBus(t)
	b.publish(said(7, proven("1.4.0")))
	b.Once(staging)
	b.pass(time.Minute)
	b.record(7)
	b.change(func(e *environmentsv1.Environment) { e.Spec.Upstreams[0].Cluster = "staging-us" })
	b.Once(staging)
	b.pass(0)
	b.Expect(b.problem()).To(ContainSubstring(`it is about cluster "staging-eu"`))
	b.Expect(b.last().Report).To(Equal(report.Report{}), "it is about another upstream")
	b.Expect(b.last().At).To(BeZero())

	moved := said(3, proven("1.3.0"))
	moved.Cluster = "staging-us"
	b.publish(moved)
	b.Ask(prod, waits)
	b.pass(time.Minute)
	b.Expect(b.last().Problem).To(BeNil(), "its numbers are its own")
	b.pass(time.Minute)
	b.Expect(b.last().Problem).To(BeNil(), "while the status still has the number of before")
	b.Expect(b.last().Report.Sequence).To(BeEquivalentTo(3))
	b.record(9)
	b.pass(time.Minute)
	b.Expect(b.problem()).To(ContainSubstring("its sequence 3 is lower than 9"))
}

func TestParallelUpstreamsDoNotComeAfterEachOther(t *testing.T) {
	for name, test := range map[string]struct {
		own, other environmentsv1.RelationshipType
	}{
		"here":  {environmentsv1.Parallel, environmentsv1.After},
		"there": {environmentsv1.After, environmentsv1.Parallel},
		"both":  {environmentsv1.Parallel, environmentsv1.Parallel},
	} {
		t.Run(name, func(t *testing.T) {
			b := openBus(t)
			b.change(func(e *environmentsv1.Environment) { e.Spec.Upstreams[0].Type = test.own })
			r := said(1)
			r.Upstreams = []environmentsv1.Relationship{{Environment: "prod", Type: test.other}, {Environment: "dev", Type: environmentsv1.After}}
			b.publish(r)
			b.Once(staging)
			b.pass(0)
			b.Expect(b.last().Problem).To(BeNil())
		})
	}
}

func TestWhatCannotBeReadHereIsTriedAgain(t *testing.T) {
	b := openBus(t)
	b.publish(said(1, proven("1.4.0")))
	broken := true
	b.environments = interceptor.NewClient(b.cluster.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if broken {
				return errors.New("the cache is not filled")
			}
			return c.Get(ctx, key, o, options...)
		},
	})
	b.Once(staging)
	b.pass(0)
	b.Expect(b.problem()).To(Equal("UpstreamUnreadable: the report of staging cannot be read: its Environment could not be read"))
	broken = false
	b.keys = func(context.Context, *environmentsv1.Environment) (report.TrustedKeys, *verdict.Problem, error) {
		return report.TrustedKeys{}, nil, errAway
	}
	b.pass(5 * time.Second)
	b.Expect(b.problem()).To(Equal("UpstreamUnreadable: the report of staging cannot be read: the trusted keys could not be read"))
	b.keys = NewKeys(b.cluster, trustedSecret)
	b.place = func(context.Context, *environmentsv1.Environment, environmentsv1.Upstream) (registry.Place, error) {
		return registry.Place{}, errAway
	}
	b.pass(10 * time.Second)
	b.Expect(b.problem()).To(ContainSubstring("the request failed"))
	b.place = NewPlace(b.cluster)
	b.pass(20 * time.Second)
	b.Expect(b.last().Problem).To(BeNil())
}
