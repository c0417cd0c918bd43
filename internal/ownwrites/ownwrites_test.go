// SPDX-License-Identifier: Apache-2.0

package ownwrites

import (
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

func object(uid, version string) *v1alpha1.Rollout {
	r := &v1alpha1.Rollout{}
	r.UID, r.ResourceVersion = types.UID(uid), version
	return r
}

func TestACopyThatDoesNotShowAWriteIsBehindIt(t *testing.T) {
	var writes Versions
	writes.Wrote(object("a", "10"))
	for _, look := range []struct {
		uid, version string
		ahead        bool
	}{
		{"a", "9", true}, {"b", "9", false}, {"a", "10", false}, {"a", "9", false}, // seen once, it is forgotten
	} {
		if got := writes.Ahead(object(look.uid, look.version)); got != look.ahead {
			t.Errorf("%s at %s: ahead is %t", look.uid, look.version, got)
		}
	}
}

// What is deleted before anybody looks at it again must not stay for ever.
func TestSoManyWritesAreRemembered(t *testing.T) {
	var writes Versions
	for i := range most + 1 {
		writes.Wrote(object(strconv.Itoa(i), "10"))
	}
	if got := writes.known().Len(); got != most {
		t.Errorf("%d are remembered", got)
	}
	if writes.Ahead(object("0", "9")) || !writes.Ahead(object("1", "9")) {
		t.Error("it is not the oldest one that was forgotten")
	}
}
