// SPDX-License-Identifier: Apache-2.0

package create

import "testing"

func TestObjectThatExistsIsKeptOnlyIfItHasAllThatIsWanted(t *testing.T) {
	type spec = map[string]any
	for name, tt := range map[string]struct {
		wanted, found any
		want          bool
	}{
		"the same":              {spec{"passing": false}, spec{"passing": false}, true},
		"more than is wanted":   {spec{"passing": false}, spec{"passing": false, "rolloutRef": spec{"name": "shop"}}, true},
		"another value":         {spec{"passing": false}, spec{"passing": true}, false},
		"less than is wanted":   {spec{"policy": spec{"semver": "1.x"}}, spec{"policy": spec{}}, false},
		"nothing":               {spec{"passing": false}, nil, false},
		"a selector of some":    {spec{"selector": spec{}}, spec{"selector": spec{"app": "shop"}}, false},
		"other items of a list": {spec{"rules": []any{"a"}}, spec{"rules": []any{"a", "b"}}, false},
	} {
		if got := covers(tt.wanted, tt.found); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
