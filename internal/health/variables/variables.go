// SPDX-License-Identifier: Apache-2.0

// Package variables replaces the variables $(version), $(window) and so on in the queries,
// paths and URLs of HealthChecks. The form is that of the args of a container, because
// Flux replaces ${…} and Helm replaces {{…}}.
//
//	variables.go  the variables, and the values that they may have
//	template.go   a text with variables: parsed once, resolved often
//	promql.go     where a variable may stand in a query, and how its value is written there
//	url.go        the same for paths and URLs
//
// A value is written so that it is only data where it stands: it can neither end a quote
// nor add a part to a path. A value that cannot be written so is refused.
package variables

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Name is the name of a variable.
type Name string

const (
	// Version is the tag of the release.
	Version Name = "version"
	// Digest is the digest of the release.
	Digest Name = "digest"
	// Revision is the revision that the release was built from.
	Revision Name = "revision"
	// Rollout is the name of the Rollout.
	Rollout Name = "rollout"
	// Namespace is the namespace of the HealthCheck.
	Namespace Name = "namespace"
	// Window is spec.prometheus.window as a duration of PromQL.
	Window Name = "window"
	// Elapsed is the time since the reset in seconds, for example 417s, and at least 1s.
	Elapsed Name = "elapsed"
	// Since is the Unix time of the reset in seconds.
	Since Name = "since"
)

var names = []Name{Version, Digest, Revision, Rollout, Namespace, Window, Elapsed, Since}

// ofRelease are the variables that differ between the Rollouts that share a HealthCheck.
var ofRelease = []Name{Version, Digest, Revision, Rollout}

// ofTime are the variables whose values are numbers and durations. They may stand anywhere.
var ofTime = []Name{Window, Elapsed, Since}

// Values are the values of the variables. Those that are not known are empty.
type Values struct {
	// Version is the tag of the release.
	Version string
	// Digest of the release, for example sha256:0f1e….
	Digest string
	// Revision of the release.
	Revision string
	// Rollout is the name of the Rollout.
	Rollout string
	// Namespace of the HealthCheck.
	Namespace string
	// Window is spec.prometheus.window; zero if it is not set.
	Window time.Duration
	// Reset is when the HealthCheck was reset.
	Reset time.Time
	// Now is when it is measured.
	Now time.Time
}

// longest is the maximum length of a value, in bytes.
const longest = 256

// The values that variables may have. The alphabet of a tag includes +, which versions of
// Helm charts contain.
var (
	tag       = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]*$`)
	digest    = regexp.MustCompile(`^[a-z0-9]+([+._-][a-z0-9]+)*:[A-Za-z0-9=_-]+$`)
	subdomain = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
)

// alphabet returns the values that a variable may have; nil if any text is one, as for a
// revision.
func (n Name) alphabet() *regexp.Regexp {
	switch n {
	case Version:
		return tag
	case Digest:
		return digest
	case Rollout, Namespace:
		return subdomain
	case Revision, Window, Elapsed, Since:
	}
	return nil
}

// of returns the value of a variable. It returns an error if the value is not known, or is
// not one that the variable may have.
func (v Values) of(name Name) (string, error) {
	value := v.text(name)
	switch alphabet := name.alphabet(); {
	case value == "":
		return "", fmt.Errorf("%s is not known", written(name))
	case len(value) > longest:
		return "", fmt.Errorf("%s has more than %d bytes", written(name), longest)
	case !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
		return "", fmt.Errorf("%s contains a control character", written(name))
	case alphabet != nil && !alphabet.MatchString(value):
		return "", fmt.Errorf("%s contains a character that is not allowed in it", written(name))
	}
	return value, nil
}

func (v Values) text(name Name) string {
	switch name {
	case Version:
		return v.Version
	case Digest:
		return v.Digest
	case Revision:
		return v.Revision
	case Rollout:
		return v.Rollout
	case Namespace:
		return v.Namespace
	case Window:
		return Duration(v.Window)
	case Elapsed:
		return strconv.FormatInt(max(1, int64(v.Now.Sub(v.Reset)/time.Second)), 10) + "s"
	case Since:
		return strconv.FormatInt(v.Reset.Unix(), 10)
	}
	return ""
}

// Duration returns a duration as PromQL writes it, for example 1h30m. It is rounded to
// milliseconds, and empty if it is not positive.
func Duration(d time.Duration) string {
	d = d.Round(time.Millisecond)
	var text strings.Builder
	for _, unit := range []struct {
		name string
		size time.Duration
	}{{"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}} {
		if n := d / unit.size; n > 0 {
			text.WriteString(strconv.FormatInt(int64(n), 10) + unit.name)
			d %= unit.size
		}
	}
	return text.String()
}

func written(name Name) string { return "$(" + string(name) + ")" }

// known returns all variables as they are written.
func known() string {
	all := make([]string, 0, len(names))
	for _, name := range names {
		all = append(all, written(name))
	}
	return strings.Join(all, ", ")
}

func isOfTime(name Name) bool { return slices.Contains(ofTime, name) }
