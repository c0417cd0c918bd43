// SPDX-License-Identifier: Apache-2.0

package act

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestNameOfAQuarantineByTag(t *testing.T) {
	for tag, want := range map[string]string{
		"1.5.0":         "shop-1.5.0",
		"v1.5.0-rc.1":   "shop-v1.5.0-rc.1",
		"1.5.0_hotfix":  "shop-1.5.0-hotfix-cfafbcdf",
		"1.5.0-hotfix":  "shop-1.5.0-hotfix",
		"RELEASE-7":     "shop-release-7-708fea4a",
		"release-7":     "shop-release-7",
		"1.5.-0":        "shop-1.5.0-2fc99719",
		"_":             "shop-7f51a4b1",
		"1.5.0-":        "shop-1.5.0-6ef83e86",
		"main.__.final": "shop-main.final-d27340c6",
	} {
		got := nameByTag("shop", tag)
		if problems := validation.IsDNS1123Subdomain(got); problems != nil {
			t.Errorf("%s: %q: %v", tag, got, problems)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tag, diff)
		}
	}
	long := nameByTag("shop", strings.Repeat("a.", 64))
	if problems := validation.IsDNS1123Subdomain(long); problems != nil {
		t.Errorf("%q: %v", long, problems)
	}
	if longer := nameByTag(strings.Repeat("shop", 63), "1.5.0"); len(longer) > validation.DNS1123SubdomainMaxLength {
		t.Errorf("%q has %d characters", longer, len(longer))
	}
}
