// SPDX-License-Identifier: Apache-2.0

package gotest

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadReturnsSuitesAndTheirTests(t *testing.T) {
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
	var atOnce []Suite
	got, err := read(strings.NewReader(printed), &compiler, func(s Suite) { atOnce = append(atOnce, s) })
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
	if diff := cmp.Diff(want, atOnce); diff != "" {
		t.Errorf("suites as they ended (-want +got):\n%s", diff)
	}
	if compiler.String() != "# x\n" {
		t.Errorf("the compiler said %q", compiler.String())
	}
}

func TestReadRefusesWhatIsNoJSON(t *testing.T) {
	if _, err := read(strings.NewReader("FAIL\n"), &strings.Builder{}, func(Suite) {}); err == nil {
		t.Error("a line that is no JSON was taken")
	}
}

func TestRunReturnsTheSuitesAlsoAfterAFailure(t *testing.T) {
	const line = `{"Action":"fail","Package":"p","Elapsed":1}`
	var failed *exec.ExitError
	suites, err := Run(exec.CommandContext(t.Context(), "sh", "-c", "echo '"+line+"'; exit 1"), func(Suite) {})
	if !errors.As(err, &failed) || len(suites) != 1 || !suites[0].Failed {
		t.Errorf("the suites are %+v, the error is %v", suites, err)
	}
}

// Run does not treat output that it cannot read as failed tests.
func TestRunEndsWhatItCannotRead(t *testing.T) {
	suites, err := Run(exec.CommandContext(t.Context(), "sh", "-c", "echo FAIL; exec sleep 300"), func(Suite) {})
	if err == nil || !strings.Contains(err.Error(), "read what go test prints") || suites != nil {
		t.Errorf("the suites are %+v, the error is %v", suites, err)
	}
}
