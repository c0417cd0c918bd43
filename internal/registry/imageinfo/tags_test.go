// SPDX-License-Identifier: Apache-2.0

package imageinfo

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/google/go-containerregistry/pkg/name"
	served "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
	"github.com/fluxrollouts/rollout-controller/test/fixture/loopback"
)

// list returns the tags of an ImageRepository in the office's registry.
func (o *office) list(_ context.Context, repository types.NamespacedName) (registry.Tags, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.listed = append(o.listed, repository.Name)
	if err := o.fails[repository.Name]; err != nil {
		return registry.Tags{}, err
	}
	return o.has[repository.Name], nil
}

// stock sets the tags of an image in the registry.
func (o *office) stock(image string, tags ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.has[image] = registry.Tags{Names: slices.Sorted(slices.Values(tags))}
}

func (o *office) listings() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.listed)
}

// listsNothing checks that nothing is listed.
func (o *office) listsNothing() {
	before := o.listings()
	o.Consistently(o.listings, 100*time.Millisecond).Should(Equal(before))
}

// scan returns a scan of the ImageRepository shop that found this number of tags.
func scan(revision string, count int, shown ...string) Scan {
	return Scan{Repository: shop, Revision: revision, Count: count, Shown: shown}
}

// TestEveryTagOfARegistryIsListed: Flux shows 1.9.0 ... 1.2.0 and 1.15.0, 1.14.0.
func TestEveryTagOfARegistryIsListed(t *testing.T) {
	o := openOffice(t)
	server := httptest.NewServer(served.New(served.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	var all []string
	for i := 2; i <= 15; i++ {
		all = append(all, fmt.Sprintf("1.%d.0", i))
		ref, err := name.NewTag(host + "/shop:" + all[len(all)-1])
		o.Expect(err).NotTo(HaveOccurred())
		o.Expect(remote.Write(ref, empty.Image)).To(Succeed())
	}
	reader, err := registry.NewReader(shopOf(t, host), nil, loopback.Guard())
	o.Expect(err).NotTo(HaveOccurred())
	defer http.DefaultClient.CloseIdleConnections()
	o.tags.list = reader.List

	shown := scan("1", len(all), "1.9.0", "1.8.0", "1.7.0", "1.6.0", "1.5.0", "1.4.0", "1.3.0", "1.2.0", "1.15.0", "1.14.0")
	o.Expect(o.Tags(web, "", shown)).To(Equal(Listing{}))
	o.Eventually(o.calls).Should(Equal([]types.NamespacedName{web}))
	got := o.Tags(web, "", shown)
	o.Expect(got.Complete).To(BeTrue())
	o.Expect(got.Tags).To(ConsistOf(all))
	o.Expect(got.Tags).To(ContainElements("1.10.0", "1.11.0"))
}

// shopOf returns a cluster with the ImageRepository shop of a registry.
func shopOf(t *testing.T, host string) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(imagev1.AddToScheme(scheme)).To(Succeed())
	repository := fixture.MakeScan(shop.Name).InNamespace(shop.Namespace).Image(host + "/shop").Obj()
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(repository).Build()
}

func TestTagsAreListedOnceForEachScanThatFoundOthers(t *testing.T) {
	o := openOffice(t)
	o.stock("shop", "1", "2")
	for _, rollout := range []types.NamespacedName{shop, web} {
		o.Tags(rollout, "", scan("1", 2))
	}
	o.Eventually(o.calls).Should(ContainElement(shop)) // the other one may have asked when all was known
	for range 10 {
		o.Expect(o.Tags(shop, "", scan("1", 2))).To(Equal(Listing{Tags: []string{"1", "2"}, Complete: true}))
	}
	o.listsNothing()
	o.Expect(o.listings()).To(Equal([]string{"shop"}), "once for all")

	o.stock("shop", "1", "2", "3")
	o.Expect(o.Tags(shop, "", scan("2", 3))).To(Equal(Listing{Tags: []string{"1", "2"}}), "what is known, and that it is not all")
	o.Eventually(func() Listing { return o.Tags(shop, "", scan("2", 3)) }).Should(
		Equal(Listing{Tags: []string{"1", "2", "3"}, Complete: true}))
	o.listsNothing()
	o.Expect(o.listings()).To(Equal([]string{"shop", "shop"}))
}

func TestTagsAreDroppedWithTheLastRolloutThatAsksForThem(t *testing.T) {
	o := openOffice(t)
	o.stock("shop", "1", "2")
	o.Tags(shop, "", scan("1", 2))
	o.Tags(web, "", scan("1", 2))
	o.Eventually(o.calls).Should(ContainElement(shop)) // the other one may have asked when all was known
	o.Forget(shop)
	o.Expect(o.tags.memory).To(HaveKeyWithValue("prod", size([]string{"1", "2"})))
	o.Tags(web, "", Scan{}) // the ImageRepository was deleted, or shows all tags
	o.Expect(o.tags.listings).To(BeEmpty())
	o.Expect(o.tags.asked).To(BeEmpty())
	o.Expect(o.tags.memory).To(Equal(map[string]int{"": 0}))
}

func TestTagsOfAnotherImageRepositoryReplaceThoseBefore(t *testing.T) {
	o := openOffice(t)
	o.stock("shop", "1")
	o.stock("web", "2")
	o.Tags(shop, "", scan("1", 1))
	o.Eventually(o.calls).Should(HaveLen(1))
	other := Scan{Repository: web, Revision: "1", Count: 1}
	o.Expect(o.Tags(shop, "", other)).To(Equal(Listing{}))
	o.Eventually(func() Listing { return o.Tags(shop, "", other) }).Should(Equal(Listing{Tags: []string{"2"}, Complete: true}))
	o.Expect(o.tags.listings).To(HaveLen(1))
}

func TestTagsThatCannotBeListedAreTriedAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		err   error
		again bool
	}{
		"a registry that is away":  {errAway, true},
		"no such image":            {registry.ErrNotFound, true},
		"what a user must correct": {registry.ErrInvalid, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := openOffice(t)
			o.stock("shop", "1")
			o.fail("shop", tt.err)
			o.Tags(shop, "broken", scan("1", 1))
			o.Eventually(o.complaints).Should(HaveLen(1))
			o.Tags(shop, "broken", scan("1", 1))
			o.listsNothing()
			if tt.again {
				o.later(firstRetry)
				o.Eventually(o.listings).Should(HaveLen(2))
				o.listsNothing()
				o.Expect(o.complaints()).To(HaveLen(1), "reported once")
			}
			o.fail("shop", nil)
			o.Expect(o.Tags(shop, "accessChanged", scan("1", 1)).Complete).To(BeFalse())
			o.Eventually(o.calls).Should(Equal([]types.NamespacedName{shop}))
			o.Expect(o.Tags(shop, "accessChanged", scan("1", 1)).Complete).To(BeTrue())
		})
	}
}

// TestReplicaThatLagsIsAskedAgain: a tag that a replica lacks counts as withdrawn only
// after ten minutes.
func TestReplicaThatLagsIsAskedAgain(t *testing.T) {
	for name, incomplete := range map[string][]string{"fewer tags than the scan": {"1", "3"}, "not the one that it showed": {"0", "1", "2"}} {
		t.Run(name, func(t *testing.T) {
			o := openOffice(t)
			o.stock("shop", incomplete...)
			found := scan("1", 3, "3")
			o.Tags(shop, "", found)
			o.Eventually(o.calls).Should(HaveLen(1))
			o.Expect(o.Tags(shop, "", found)).To(Equal(Listing{Tags: incomplete}))
			o.stock("shop", "1", "2", "3")
			o.later(firstRetry)
			o.Eventually(func() Listing { return o.Tags(shop, "", found) }).Should(
				Equal(Listing{Tags: []string{"1", "2", "3"}, Complete: true}))
		})
	}
}

func TestTagsThatStayAwayAreGoneInTheEnd(t *testing.T) {
	o := openOffice(t)
	o.stock("shop", "1")
	found := scan("1", 2)
	o.Tags(shop, "", found)
	for i, pause := 1, firstRetry; i <= patience; i, pause = i+1, min(2*pause, lastRetry) {
		o.Eventually(o.listings).Should(HaveLen(i))
		o.Expect(o.Tags(shop, "", found).Complete).To(BeFalse())
		o.later(pause)
	}
	o.Eventually(func() bool { return o.Tags(shop, "", found).Complete }).Should(BeTrue())
	o.clock.Step(lastRetry)
	o.listsNothing()
}

func TestCutListIsNeverComplete(t *testing.T) {
	o := openOffice(t)
	o.mu.Lock()
	o.has["shop"] = registry.Tags{Names: []string{"1"}, Cut: true}
	o.mu.Unlock()
	o.Tags(shop, "", scan("1", 20_000))
	o.Eventually(o.calls).Should(HaveLen(1))
	o.Expect(o.Tags(shop, "", scan("1", 20_000))).To(Equal(Listing{Tags: []string{"1"}, Cut: true}))
	o.listsNothing()
	o.Expect(o.listings()).To(HaveLen(1))
}

func TestOneNamespaceCannotTakeAllTheMemoryForTags(t *testing.T) {
	o := openOffice(t)
	o.tags.memory["prod"], o.tags.memory[""] = mostOfNamespace-size([]string{"1"}), mostOfNamespace-size([]string{"1"})
	o.stock("shop", "1", "2")
	o.Tags(shop, "", scan("1", 2))
	o.Eventually(o.calls).Should(HaveLen(1))
	o.Expect(o.Tags(shop, "", scan("1", 2))).To(Equal(Listing{Cut: true}))

	o.stock("web", "1", "2")
	other := Scan{Repository: types.NamespacedName{Namespace: "dev", Name: "web"}, Revision: "1", Count: 2}
	o.Tags(web, "", other)
	o.Eventually(func() bool { return o.Tags(web, "", other).Complete }).Should(BeTrue())
}
