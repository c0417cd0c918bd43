// SPDX-License-Identifier: Apache-2.0

package variables_test

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"

	"github.com/fluxrollouts/rollout-controller/internal/health/variables"
)

func TestURL(t *testing.T) {
	for name, tt := range map[string]struct {
		source string
		in     variables.Values
		want   string
	}{
		"no variable":             {"https://a.example.com:8443", values(), "https://a.example.com:8443"},
		"in the path and query":   {"https://a.example.com/v/$(version)?r=$(revision)&x=1", values(), "https://a.example.com/v/1.4.0?r=main%40sha1%3Aab&x=1"},
		"a query without path":    {"http://a?v=$(version)", values(), "http://a?v=1.4.0"},
		"a value with delimiters": {"http://a/$(revision)?r=$(revision)", revision("a/b?c#d&e=f%"), "http://a/a%2Fb%3Fc%23d&e=f%25?r=a%2Fb%3Fc%23d%26e%3Df%25"},
		"spaces":                  {"http://a/$(revision)?r=$(revision)", revision("a b+c"), "http://a/a%20b+c?r=a+b%2Bc"},
		"a variable as text":      {"http://a/$$(version)?x=$", values(), "http://a/$(version)?x=$"},
		"a question in a query":   {"http://a/?x=?$(revision)", revision("a b"), "http://a/?x=?a+b"},
		"a percent sign before":   {"http://a/%20$(version)", values(), "http://a/%201.4.0"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			template, err := variables.URL("spec.http.url", tt.source)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(template.Resolve(tt.in)).To(Equal(tt.want))
		})
	}
}

func TestURLProblems(t *testing.T) {
	const escape = "it contains a character that must be escaped, or an incomplete escape: a space is %20, and a percent sign is %25"
	for source, want := range map[string]string{
		"http://$(version).example.com/": "a variable may stand only in the path and the query",
		"http://a:$(window)/":            "a variable may stand only in the path and the query",
		"http://$(revision)@a/":          "a variable may stand only in the path and the query",
		"$(version)://a/":                "it must begin with http:// or https://",
		"a/$(version)":                   "it must begin with http:// or https://",
		"http://a/%$(version)":           escape,
		"http://a/%2$(version)":          escape,
		"http://a/a b":                   escape,
		"http://a/é":                     escape,
		"http://a/%zz":                   escape,
		"http://a/$(version":             "a variable is not closed: write $$( if you mean the text $(",
	} {
		t.Run(source, func(t *testing.T) {
			g := NewWithT(t)
			_, err := variables.URL("spec.http.url", source)
			g.Expect(err).To(MatchError("spec.http.url: " + want))
		})
	}
}

func TestPathSegmentsOfDots(t *testing.T) {
	for _, value := range []string{".", "..", "...", "a/../b", "../a", "a/..", `a\..\b`, "./x", "x/."} {
		g := NewWithT(t)
		path, err := variables.Path("spec.http.service.path", "/a/.$(revision)")
		g.Expect(err).NotTo(HaveOccurred())
		_, err = path.Resolve(revision(value))
		g.Expect(err).To(MatchError("$(revision) has a segment of dots, but is in a path"), value)

		query, err := variables.Path("spec.http.service.path", "/?a=$(revision)")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(query.Resolve(revision(value))).To(HavePrefix("/?a="), value)
	}
}

func TestShown(t *testing.T) {
	g := NewWithT(t)
	g.Expect(variables.Shown("up")).To(Equal("up"))
	g.Expect(utf8.RuneCountInString(variables.Shown(strings.Repeat("a", 4096)))).To(Equal(1024), "the schema allows no more")
	g.Expect(variables.Shown("a\xff")).To(Equal("a?"))
}

// FuzzURL checks that no value changes the host, the number of segments and parameters, or
// adds a fragment.
func FuzzURL(f *testing.F) {
	for _, source := range []string{"http://a/$(revision)?b=$(revision)", "https://a:1/.$(revision)/x", "http://a?$(revision)=1"} {
		f.Add(source, "a/../b?c#d&e=f%2F")
	}
	f.Fuzz(func(t *testing.T, source, value string) {
		template, err := variables.URL("u", source)
		if err != nil || strings.Contains(source, "#") {
			return
		}
		harmless, err := template.Resolve(revision("x"))
		if err != nil {
			t.Fatal(err)
		}
		want, err := url.Parse(harmless)
		if err != nil {
			return
		}
		text, err := template.Resolve(revision(value))
		if err != nil {
			return
		}
		got, err := url.Parse(text)
		if err != nil {
			t.Fatalf("%q with %q: %v", source, value, err)
		}
		same := got.Host == want.Host && got.Scheme == want.Scheme && got.Fragment == "" && got.User.String() == want.User.String() &&
			strings.Count(got.EscapedPath(), "/") == strings.Count(want.EscapedPath(), "/") &&
			strings.Count(got.RawQuery, "&") == strings.Count(want.RawQuery, "&") && strings.Count(got.RawQuery, "=") == strings.Count(want.RawQuery, "=")
		if !same {
			t.Errorf("%q with %q: %q", source, value, text)
		}
	})
}
