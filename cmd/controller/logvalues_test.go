// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// TestLateValuesWriteTheSameLines includes the place in the source, which depends on the
// number of calls in between.
func TestLateValuesWriteTheSameLines(t *testing.T) {
	written := func(late bool) string {
		out := &strings.Builder{}
		log := funcr.NewJSON(func(line string) { out.WriteString(line + "\n") }, funcr.Options{LogCaller: funcr.All})
		if late {
			log = withLateValues(log)
		}
		one := log.WithName("web").WithValues("a", 1)
		two, three := one.WithValues("b", "x"), one.WithValues("b", "y")
		for _, log := range []logr.Logger{log, one, two, three, two.WithName("more").WithCallDepth(1)} {
			log.Info("it is", "c", true)
			log.V(1).Info("it is not")
			log.Error(errors.New("broken"), "it fails")
		}
		return out.String()
	}
	if want, got := written(false), written(true); got != want {
		t.Errorf("the lines are\n%s, want\n%s", got, want)
	}
}
