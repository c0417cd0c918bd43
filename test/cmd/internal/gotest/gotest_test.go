// SPDX-License-Identifier: Apache-2.0

package gotest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadTellsSuitesAndTheirTests(t *testing.T) {
	const printed = `
{"ImportPath":"x","Action":"build-output","Output":"# x\n"}
{"Action":"start","Package":"github.com/fluxrollouts/rollout-controller/internal/a"}
{"Action":"output","Package":"github.com/fluxrollouts/rollout-controller/internal/a","Test":"TestOne","Output":"one went wrong\n"}
{"Action":"fail","Package":"github.com/fluxrollouts/rollout-controller/internal/a","Test":"TestOne/part","Elapsed":1}
{"Action":"fail","Package":"github.com/fluxrollouts/rollout-controller/internal/a","Test":"TestOne","Elapsed":1.5}
{"Action":"pass","Package":"github.com/fluxrollouts/rollout-controller/internal/b","Test":"TestTwo","Elapsed":2}
{"Action":"output","Package":"github.com/fluxrollouts/rollout-controller/internal/b","Output":"ok\n"}
{"Action":"pass","Package":"github.com/fluxrollouts/rollout-controller/internal/b","Elapsed":3}
{"Action":"fail","Package":"github.com/fluxrollouts/rollout-controller/internal/a","Elapsed":4}
{"Action":"skip","Package":"github.com/fluxrollouts/rollout-controller/internal/c","Elapsed":0}
`
	var compiler strings.Builder
	got, err := Read(strings.NewReader(printed), &compiler)
	if err != nil {
		t.Fatal(err)
	}
	want := []Suite{
		{Name: "internal/b", Took: 3 * time.Second, Tests: []Test{{Name: "TestTwo", Took: 2 * time.Second}}},
		{
			Name: "internal/a", Failed: true, Took: 4 * time.Second, Output: "one went wrong\n",
			Tests: []Test{{Name: "TestOne", Failed: true, Took: 1500 * time.Millisecond}},
		},
		{Name: "internal/c"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("suites (-want +got):\n%s", diff)
	}
	if compiler.String() != "# x\n" {
		t.Errorf("the compiler said %q", compiler.String())
	}
}

func TestReadRefusesWhatIsNoJSON(t *testing.T) {
	if _, err := Read(strings.NewReader("FAIL\n"), &strings.Builder{}); err == nil {
		t.Error("a line that is no JSON was taken")
	}
}
