// SPDX-License-Identifier: Apache-2.0

package variables_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/fluxrollouts/rollout-controller/internal/health/variables"
)

var reset = time.Date(2026, 7, 6, 12, 0, 0, 0, time.UTC)

func values() variables.Values {
	return variables.Values{
		Version: "1.4.0", Digest: "sha256:0f1e", Revision: "main@sha1:ab", Rollout: "shop.eu", Namespace: "apps",
		Window: 90 * time.Second, Reset: reset, Now: reset.Add(417*time.Second + 900*time.Millisecond),
	}
}

func revision(text string) variables.Values {
	v := values()
	v.Revision = text
	return v
}

func TestQuery(t *testing.T) {
	for name, tt := range map[string]struct {
		source string
		in     variables.Values
		want   string
	}{
		"no variable":              {`sum(up) # $(x)`, values(), `sum(up) # $(x)`},
		"a label and a window":     {`rate(e{v="$(version)"}[$(window)])`, values(), `rate(e{v="1.4.0"}[1m30s])`},
		"the time since the reset": {`rate(e[$(elapsed)] @ $(since))`, values(), `rate(e[417s] @ 1783339200)`},
		"all others":               {`{a='$(digest)',b="$(rollout)",c="$(namespace)"}`, values(), `{a='sha256:0f1e',b="shop.eu",c="apps"}`},
		"a regular expression":     {`{v=~"$(version)|x", n!~ '$(version)', r=~` + "`$(rollout)`}", values(), `{v=~"1\\.4\\.0|x", n!~ '1\\.4\\.0', r=~` + "`shop\\.eu`}"},
		"text after one":           {`{v=~"a"} + {v="$(version)"}`, values(), `{v=~"a"} + {v="1.4.0"}`},
		"quotes in a value":        {`{a="$(revision)",b='$(revision)'}`, revision(`"'\`), `{a="\"'\\",b='"\'\\'}`},
		"a value in a raw string":  {"{a=`$(revision)`}", revision(`a\"b`), "{a=`a\\\"b`}"},
		"a quote that is escaped":  {`{a="\"$(version)"}`, values(), `{a="\"1.4.0"}`},
		"a dollar sign":            {`{a=~"x$",b="$5"}`, values(), `{a=~"x$",b="$5"}`},
		"a variable as text":       {`{a="$$(version)"}`, values(), `{a="$(version)"}`},
		"a quote in a comment":     {"up # it's\n + {v=\"$(version)\"}", values(), "up # it's\n + {v=\"1.4.0\"}"},
		"a hash in a string":       {`{a="#",v="$(version)"}`, values(), `{a="#",v="1.4.0"}`},
		"at the reset":             {`e[$(elapsed)]`, variables.Values{Reset: reset, Now: reset}, `e[1s]`},
		"a clock that goes back":   {`e[$(elapsed)]`, variables.Values{Reset: reset, Now: reset.Add(-time.Hour)}, `e[1s]`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			template, err := variables.Query("spec.prometheus.query", tt.source, time.Minute)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(template.Resolve(tt.in)).To(Equal(tt.want))
		})
	}
}

func TestQueryProblems(t *testing.T) {
	const all = "$(version), $(digest), $(revision), $(rollout), $(namespace), $(window), $(elapsed), $(since)"
	for source, want := range map[string]string{
		`{v="$(vers)"}`:    "unknown variable $(vers): use " + all + ", or write $$( if you mean the text $(",
		`{v="$(VERSION)"}`: "unknown variable $(VERSION): use " + all + ", or write $$( if you mean the text $(",
		`{v="$(version"}`:  "a variable is not closed: write $$( if you mean the text $(",
		`up{v=$(version)}`: `$(version) must stand in quotes, as in {label="$(version)"}`,
		`$(rollout)_up`:    `$(rollout) must stand in quotes, as in {label="$(rollout)"}`,
		`{v="a}`:           `the quote " is not closed`,
		"{v=`a}":           "the quote ` is not closed",
	} {
		t.Run(source, func(t *testing.T) {
			g := NewWithT(t)
			_, err := variables.Query("spec.prometheus.query", source, time.Minute)
			g.Expect(err).To(MatchError("spec.prometheus.query: " + want))
		})
	}
}

func TestQueryWithoutWindow(t *testing.T) {
	g := NewWithT(t)
	_, err := variables.Query("spec.prometheus.query", "rate(e[$(window)])", 0)
	g.Expect(err).To(MatchError("spec.prometheus.query: it contains $(window), so set spec.prometheus.window"))
	_, err = variables.Query("spec.prometheus.query", "rate(e[2m]) # $(window)", 0)
	g.Expect(err).NotTo(HaveOccurred())
}

func TestValuesThatAreRefused(t *testing.T) {
	const query = "{a=\"$(version)$(rollout)$(namespace)\",b='$(digest)$(revision)',c=`$(revision)`}[$(window)]"
	for name, tt := range map[string]struct {
		change func(*variables.Values)
		want   string
	}{
		"no digest":                {func(v *variables.Values) { v.Digest = "" }, "$(digest) is not known"},
		"no window":                {func(v *variables.Values) { v.Window = 0 }, "$(window) is not known"},
		"a tag with a quote":       {func(v *variables.Values) { v.Version = `1"` }, "$(version) contains a character that is not allowed in it"},
		"a digest with a space":    {func(v *variables.Values) { v.Digest = "sha256: 0" }, "$(digest) contains a character that is not allowed in it"},
		"a name in capitals":       {func(v *variables.Values) { v.Rollout = "Shop" }, "$(rollout) contains a character that is not allowed in it"},
		"a namespace with a slash": {func(v *variables.Values) { v.Namespace = "a/b" }, "$(namespace) contains a character that is not allowed in it"},
		"a line break":             {func(v *variables.Values) { v.Revision = "a\nb" }, "$(revision) contains a control character"},
		"bytes that are no text":   {func(v *variables.Values) { v.Revision = "\xff" }, "$(revision) contains a control character"},
		"a long revision":          {func(v *variables.Values) { v.Revision = strings.Repeat("a", 257) }, "$(revision) has more than 256 bytes"},
		"the end of a raw string":  {func(v *variables.Values) { v.Revision = "a`b" }, "$(revision) contains a backtick, but is between backticks: use double quotes in the query"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			template, err := variables.Query("spec.prometheus.query", query, time.Minute)
			g.Expect(err).NotTo(HaveOccurred())
			in := values()
			tt.change(&in)
			_, err = template.Resolve(in)
			g.Expect(err).To(MatchError(tt.want))
		})
	}
}

func TestQueriesThatUseTheRelease(t *testing.T) {
	for source, want := range map[string]bool{
		`up`: false, `{n="$(namespace)"}[$(window)] @ $(since)`: false, `"$$(version)"`: false,
		`"$(version)"`: true, `"$(digest)"`: true, `"$(revision)"`: true, `"$(rollout)"`: true,
	} {
		g := NewWithT(t)
		template, err := variables.Query("q", source, time.Minute)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(template.UsesRelease()).To(Equal(want), source)
		g.Expect(template.Uses(variables.Window)).To(Equal(strings.Contains(source, "window")), source)
	}
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]string{
		"0s": "", "-1s": "", "1us": "", "1m": "1m", "90m": "1h30m", "24h": "24h", "1.5s": "1s500ms", "3601s": "1h1s",
	} {
		g := NewWithT(t)
		d, err := time.ParseDuration(text)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(variables.Duration(d)).To(Equal(want))
	}
}

// stringsOf returns the strings of a query and what is outside of them, by the rules of
// PromQL. It knows nothing of variables.
func stringsOf(query string) (inside []string, outside string) {
	for query != "" {
		i := strings.IndexAny(query, "\"'`#")
		if i < 0 {
			return inside, outside + query
		}
		outside += query[:i]
		if query[i] == '#' {
			_, query, _ = strings.Cut(query[i:], "\n")
			continue
		}
		end := endOf(query[i:])
		inside, query = append(inside, query[i:i+end]), query[i+end:]
	}
	return inside, outside
}

func endOf(literal string) int {
	for i := 1; i < len(literal); i++ {
		switch {
		case literal[i] == '\\' && literal[0] != '`':
			i++
		case literal[i] == literal[0]:
			return i + 1
		}
	}
	return len(literal)
}

// FuzzQuery checks that no value changes anything outside of the strings of a query, nor
// their number.
func FuzzQuery(f *testing.F) {
	for _, source := range []string{
		`{a="$(revision)"}`, "{a='$(revision)',b=`$(revision)`}", `{a=~"x\"$(revision)"} # '` + "\n" + `+ "$(revision)"`, `"\$(revision)"`,
	} {
		f.Add(source, `"'`+"`\\} or vector(1) #")
	}
	f.Fuzz(func(t *testing.T, source, value string) {
		template, err := variables.Query("q", source, time.Minute)
		if err != nil {
			return
		}
		harmless, err := template.Resolve(revision("x"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := template.Resolve(revision(value))
		if err != nil {
			return
		}
		in, out := stringsOf(got)
		wantIn, wantOut := stringsOf(harmless)
		if out != wantOut || len(in) != len(wantIn) {
			t.Errorf("%q with %q: %q", source, value, got)
		}
	})
}
