// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"math"
	"net/http"
	"runtime"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	ours "github.com/fluxrollouts/rollout-controller/internal/registry"
)

// TestNoAnswerTakesMuchMemory: the owner of a registry must not be able to end the
// process that all tenants share. On the network, such an answer has some kilobytes.
func TestNoAnswerTakesMuchMemory(t *testing.T) {
	const most = 16 << 20
	many := func(element string, size int) string {
		return strings.TrimSuffix(strings.Repeat(element+",", size/(len(element)+1)), ",")
	}
	for name, body := range map[string]string{
		"many layers":              `{"schemaVersion":2,"layers":[` + many("{}", 4<<20) + `]}`,
		"many images":              `{"schemaVersion":2,"manifests":[` + many("{}", 500<<10) + `]}`,
		"many annotations":         `{"schemaVersion":2,"annotations":{` + many(`"a":""`, 500<<10) + `}}`,
		"deep objects":             strings.Repeat(`{"a":`, 100_000),
		"many elements of no kind": `{"schemaVersion":2,"other":[` + many("[]", 500<<10) + `]}`,
		"a long text":              `{"schemaVersion":2,"annotations":{"org.opencontainers.image.title":"` + strings.Repeat("x", 4<<20) + `"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := openSite(t)
			packed := pack(t, body) // the memory of its creation is not counted
			s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v2/" {
					return
				}
				w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = w.Write(packed)
			})
			reader := s.reader()
			took := allocated(func() {
				_, err := s.readBy(t.Context(), reader, ours.Image{Tag: "1.0.0"})
				s.Expect(err).To(MatchError(ContainSubstring("the answer is larger than any that is read")))
			})
			s.Expect(took).To(BeNumerically("<", most), "bytes")
		})
	}
}

func TestManyTagsInOneAnswerTakeLittleMemory(t *testing.T) {
	s := openSite(t)
	body := []byte(`{"tags":[` + strings.Repeat(`"",`, 1<<20) + `""]}`) // the memory of its creation is not counted
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/" {
			_, _ = w.Write(body)
		}
	})
	took := allocated(func() {
		tags, err := s.list(t.Context())
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(tags.Cut).To(BeTrue())
	})
	s.Expect(took).To(BeNumerically("<", 16<<20), "bytes")
}

func pack(t *testing.T, body string) []byte {
	t.Helper()
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := io.WriteString(writer, body); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// allocated counts the allocated bytes, including those that were freed meanwhile. Other
// goroutines also allocate, so the minimum of some attempts counts.
func allocated(do func()) uint64 {
	least := uint64(math.MaxUint64)
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}
