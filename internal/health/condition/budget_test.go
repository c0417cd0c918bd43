// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/condition"
)

// repeated returns an expression that does a step with a list as often as it may.
func repeated(list, step, last string) string { return list + strings.Repeat(step, 20) + last }

// TestBombs evaluates expressions that need years, or more memory than there is, in an
// evaluator that has only CEL's own limits.
func TestBombs(t *testing.T) {
	body := strings.Repeat("a", health.MostOfBody)
	for name, source := range map[string]string{
		"nested comprehensions":       "[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, [0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, [0,1,2,3,4,5,6,7,8,9].all(f, a + b + c + d + e + f >= 0))))))",
		"a comprehension over a body": "body.split('').all(a, body.split('').all(b, a == b))",
		"a text in a text":            "body.replace('', body) != ''",
		"a long separator":            "body.split('').join(body) != ''",
		"a long precision":            "'%.999999999f'.format([1.0]) != ''",
		"an endless precision":        "[1].all(x, ('%.' + '9999999999999999999999f').format([1.0]) != '')",
		"a text that doubles":         repeated("[body]", ".map(x, x + x)", "[0] != ''"),
		"a format that triples":       repeated("[body]", ".map(x, '%s%s%s'.format([x, x, x]))", "[0] != ''"),
		"lists that are compared":     repeated("[['a']]", ".map(x, [x, x])", ".all(x, x == x)"),
		"lists that are not equal":    repeated("[['a']]", ".map(x, [x, x])", ".exists(x, x != x)"),
		"lists that are added":        repeated("[['a']]", ".map(x, x + x)", "[0].size() > 0"),
		"lists that are joined":       repeated("[['a']]", ".map(x, x + x)", "[0].join() != ''"),
		"maps that are compared":      repeated("[{'a': {'b': 1}}]", ".map(x, {'a': x, 'b': x})", " == []"),
		"sets that are compared":      "sets.contains(body.split(''), body.split('').map(x, x + 'b'))",
		"sets of lists":               "[body.split('')].all(x, sets.intersects([x + ['a'], x + ['b']], [x + ['c'], x + ['d']]))",
		"a list that is searched":     "body.split('').all(x, !('b' in body.split('')))",
		"a text that is searched":     "body.indexOf(body.substring(0, 30000) + 'b') == -1",
		"a text from the end":         "body.lastIndexOf('b' + body.substring(0, 30000)) == -1",
		"a large regular expression":  "body.matches('(.*" + strings.Repeat("a{999}", 9) + ".*)*b')",
		"a huge regular expression":   "''.matches('" + strings.Repeat("a{1000}", 250) + "')",
		"a body as an expression":     "body.matches(body)",
		"an encoder":                  repeated("[body]", ".map(x, base64.encode(bytes(x)))", "[0] != ''"),
		"quotes":                      repeated("[body]", ".map(x, strings.quote(x + '\"\"'))", "[0] != ''"),
		"optional values":             repeated("[optional.of([1])]", ".map(x, optional.of([x, x]))", " == []"),
		"suppressed errors":           "body.replace('', body) != '' || true",
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			e, err := condition.HTTP(source)
			g.Expect(err).NotTo(HaveOccurred())
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = e.Holds(t.Context(), condition.Response{Body: body})
			runtime.ReadMemStats(&after)
			g.Expect(err).To(MatchError("it is too expensive: use fewer or smaller lists, or a simpler expression"))
			g.Expect(after.TotalAlloc-before.TotalAlloc).To(BeNumerically("<", 256<<20), "bytes")
		})
	}
}

// TestDeadline uses a deadline that has passed. It is checked after each 100 iterations.
func TestDeadline(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e, err := condition.HTTP("body.split('').all(c, c == 'a')")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = e.Holds(ctx, condition.Response{Body: strings.Repeat("a", 200)})
	g.Expect(err).To(MatchError("it takes too long: use fewer or smaller lists"))
}

// TestUsualExpressionsAreAffordable uses the largest values that there are.
func TestUsualExpressionsAreAffordable(t *testing.T) {
	line := `{"ok":true}` + "\n"
	items := strings.Repeat(`{"state":"ready","n":1},`, 2500)
	for source, body := range map[string]string{
		"body.split('\\n').filter(l, l != '').all(l, l.contains('true'))": strings.Repeat(line, health.MostOfBody/len(line)),
		"json.items.all(i, i.state == 'ready' && i.n <= 1)":               `{"items":[` + strings.TrimSuffix(items, ",") + `]}`,
		"body.matches('.*(a+b|c)$')":                                      strings.Repeat("a", health.MostOfBody-1) + "c",
		"body.lowerAscii().replace('a', 'bb').size() == 131072":           strings.Repeat("A", health.MostOfBody),
	} {
		g := NewWithT(t)
		e, err := condition.HTTP(source)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(e.Holds(t.Context(), condition.Response{Body: body})).To(BeTrue(), source)
	}
}

// FuzzSources checks that no expression panics, takes long or shows the body.
func FuzzSources(f *testing.F) {
	for _, seed := range []string{
		"", "status == 200", "json.a.b[0] == 'x'", "body.replace('', body) == ''", "[1].map(x, [x, x]) == [[1]]",
		"headers['a'].exists(h, h.matches(body))", "'%d %s'.format([1, body]) == ''", "optional.of(1).orValue(2) == 1",
		"json.?a.orValue(1) == 1", "int(body) == 1", "json[body]", "google.protobuf.Struct{} == {}", "[?optional.none()] == []",
	} {
		f.Add(seed)
	}
	in := condition.Response{Status: 200, Body: strings.Repeat(marker, 100), Headers: map[string][]string{"A": {marker}}}
	f.Fuzz(func(t *testing.T, source string) {
		start := time.Now()
		e, err := condition.HTTP(source)
		if err != nil {
			if len(err.Error()) > 512 {
				t.Errorf("a problem of %d bytes", len(err.Error()))
			}
			return
		}
		_, err = e.Holds(t.Context(), in)
		if err != nil && !strings.Contains(source, marker) && strings.Contains(err.Error(), marker) {
			t.Errorf("the error shows the body: %v", err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}
