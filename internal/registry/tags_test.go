// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ours "github.com/fluxrollouts/rollout-controller/internal/registry"
)

// list lists the tags of the ImageRepository registry/shop.
func (s *site) list(ctx context.Context) (ours.Tags, error) {
	return s.reader().List(ctx, client.ObjectKeyFromObject(s.repository()))
}

// pages is a registry that shows its tags in pages. If it is endless, the last page links
// to the first one again.
func pages(size int, tags []string, endless bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/" {
			return
		}
		start, _ := strconv.Atoi(r.URL.Query().Get("start"))
		end := min(start+size, len(tags))
		if next := end; next < len(tags) || endless {
			w.Header().Set("Link", fmt.Sprintf(`</v2/shop/tags/list?start=%d>; rel="next"`, next%len(tags)))
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"name": "shop", "tags": tags[start:end]})
	})
}

func numbered(count int) []string {
	tags := make([]string, 0, count)
	for i := range count {
		tags = append(tags, fmt.Sprintf("1.%d.0", i))
	}
	return tags
}

func TestTagsOfARegistry(t *testing.T) {
	slow := "(a|b)"
	for name, tt := range map[string]struct {
		tags     http.Handler
		excluded []string
		want     []string
		cut      bool
		is       error
	}{
		"none":                              {tags: pages(10, nil, false)},
		"sorted as strings, and each once":  {tags: pages(10, []string{"1.9.0", "1.10.0", "1.9.0"}, false), want: []string{"1.10.0", "1.9.0"}},
		"in several pages":                  {tags: pages(4, numbered(14), false), want: numbered(14)},
		"without signatures, as Flux":       {tags: pages(10, []string{"1.0.0", "sha256-1.sig", "x.sig.1"}, false), want: []string{"1.0.0", "x.sig.1"}},
		"without those that are excluded":   {tags: pages(10, []string{"1.0.0", "main-1", "x.sig"}, false), excluded: []string{"^main-"}, want: []string{"1.0.0", "x.sig"}},
		"without what cannot be a tag":      {tags: pages(10, []string{"1.0.0", "", "a b", strings.Repeat("x", 129)}, false), want: []string{"1.0.0"}},
		"as many as are kept":               {tags: pages(2_000, numbered(5_001), false), want: numbered(5_000), cut: true},
		"no more if all are kept":           {tags: pages(2_000, numbered(5_000), false), want: numbered(5_000)},
		"as many pages as are read":         {tags: pages(2, numbered(1_000), false), want: numbered(200), cut: true},
		"not for ever if there is no end":   {tags: pages(7, numbered(14), true), want: numbered(14), cut: true},
		"not all of what is excluded":       {tags: pages(60_000, slices.Repeat([]string{"x.sig"}, 130_000), false), cut: true},
		"an answer that is larger than any": {tags: pages(100_000, slices.Repeat([]string{strings.Repeat("x", 100)}, 100_000), false), cut: true},
		"a pattern that is none":            {tags: pages(10, nil, false), excluded: []string{"("}, is: ours.ErrInvalid},
		"patterns that are too long":        {tags: pages(10, nil, false), excluded: slices.Repeat([]string{strings.Repeat(slow, 100)}, 25), is: ours.ErrInvalid},
		"that there is no such image":       {tags: http.NotFoundHandler(), is: ours.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			s := openSite(t)
			s.handler, s.spec.ExclusionList = tt.tags, tt.excluded
			got, err := s.list(t.Context())
			if tt.is != nil {
				s.Expect(errors.Is(err, tt.is)).To(BeTrue(), "%v", err)
				return
			}
			s.Expect(err).NotTo(HaveOccurred())
			slices.Sort(tt.want)
			s.Expect(slices.Equal(got.Names, tt.want)).To(BeTrue(), "got %d tags, want %d", len(got.Names), len(tt.want))
			s.Expect(got.Cut).To(Equal(tt.cut))
		})
	}
}

func TestTagsAreListedWithTheLoginOfTheImageRepository(t *testing.T) {
	s := openSite(t)
	s.push("1.0.0", image(nil))
	s.guard("secret")
	_, err := s.list(t.Context())
	s.Expect(err).To(HaveOccurred())
	s.objects = append(s.objects, pull("registry", "login", s.host(), "secret"))
	s.spec.SecretRef = &meta.LocalObjectReference{Name: "login"}
	s.Expect(s.list(t.Context())).To(Equal(ours.Tags{Names: []string{"1.0.0"}}))
}

func TestListingIsLeftWhenTheContextEnds(t *testing.T) {
	s := openSite(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	_, err := s.list(ctx)
	s.Expect(err).To(MatchError(context.Canceled))
}
