// SPDX-License-Identifier: Apache-2.0

package page

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/browser"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// What failed, was left again and is in quarantine is one lane: it is the same content.
func TestPageShowsIncidents(t *testing.T) {
	a := env.NewApplication(t, plane)
	a.Release("1.0.0")
	a.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	source := a.OCIRepository("")
	a.Change(source, func() { source.Spec.Suspend = true })
	a.SetDeployTimeout(time.Second)
	digest := a.Push(a.ConfigRelease("1.7.0"))
	a.Scan()
	a.AwaitState("1.7.0", v1alpha1.BakeFailed)

	o := open(t, a.CommandLine(a.Namespace+":ken", masters), "-n", a.Namespace)
	o.goes("/incidents")
	o.shows("1.7.0 " + digest[:len("sha256:")+12] + " lasts")
	o.shows("✗ Failed")
	a.Pin("1.0.0")
	o.shows("↩ Rolled back")
	o.shows("to 1.0.0")
	quarantine := &v1alpha1.ReleaseQuarantine{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "bad"}}
	quarantine.Spec.Digest, quarantine.Spec.Reason = digest, "INC-4711 <b>leaks</b>"
	a.Create(quarantine)
	o.shows("⊘ Quarantined")
	o.shows("INC-4711 <b>leaks</b>")
	if n := browser.Ask(t, o.Browser, chromedp.Evaluate[int64](`document.querySelectorAll(".drawing circle").length`)); n != 3 {
		t.Errorf("%d events are drawn, want those of the table: 3", n)
	}
	if seen := o.text(); strings.Count(seen, "sha256:") != 1 {
		t.Errorf("one content is not one lane:\n%s", seen)
	}
	o.canBeRead("incidents")
}
