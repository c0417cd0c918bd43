// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
)

// handling is a cluster whose controllers handle each request at once.
type handling struct {
	*recording
	// deadline is when the program stops waiting.
	deadline time.Time
}

func (h *handling) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	h.deadline, _ = ctx.Deadline()
	err := h.recording.Patch(ctx, object, patch, options...)
	token := object.GetAnnotations()[v1alpha1.ReconcileRequestAnnotation]
	switch object := object.(type) {
	case *v1alpha1.Rollout:
		object.Status.LastHandledReconcileAt = token
	case *imagev1.ImageRepository:
		object.Status.LastHandledReconcileAt = token
	}
	return err
}

// runHandled runs a verb where each request is handled at once.
func runHandled(t *testing.T, args ...string) (answer, *handling) {
	t.Helper()
	folder := t.TempDir()
	objects, config := filepath.Join(folder, "objects"), filepath.Join(folder, "kubeconfig")
	if err := os.WriteFile(objects, []byte(reconciledObjects), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte(kubeconfigOf("here", "shop")), 0o600); err != nil {
		t.Fatal(err)
	}
	c, r, err := openRecording(objects, filepath.Join(folder, "patch"))
	if err != nil {
		t.Fatal(err)
	}
	h := &handling{recording: r}
	c.Client = h
	var out, errs bytes.Buffer
	p := program.New("kubectl rollouts", genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errs})
	p.Kubeconfig.KubeConfig = &config
	p.Now = func() time.Time { return noon }
	p.Connect = func(context.Context) (program.Cluster, error) { return c, nil }
	code := run(t.Context(), p, append(args, "-n", "shop"))
	return answer{out.String(), errs.String(), code}, h
}

const reconciledObjects = `
apiVersion: kuberik.com/v1alpha1
kind: Rollout
metadata: {name: shop, namespace: shop, generation: 1}
spec: {releasesImagePolicy: {name: shop}}
status:
  observedGeneration: 1
  history: [{id: 1, version: {tag: 1.0.0}, timestamp: "2026-11-19T08:12:00Z", bakeStatus: Succeeded}]
---
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImagePolicy
metadata: {name: shop, namespace: shop}
spec: {imageRepositoryRef: {name: images}}
---
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImageRepository
metadata: {name: images, namespace: shop}
`

func TestReconcilePrintsWhatWasReconciled(t *testing.T) {
	const sentence = "Rollout shop is reconciled"
	for flags, want := range map[string]string{
		"-o name":               "rollout.kuberik.com/shop\n",
		"-o name --with-source": "imagerepository.image.toolkit.fluxcd.io/images\nrollout.kuberik.com/shop\n",
		"-o jsonpath={.status.history[0].version.tag}": "1.0.0",
		"-o json": `"kind": "Rollout"`,
		"-o yaml": "lastHandledReconcileAt: ",
	} {
		got, _ := runHandled(t, append([]string{"reconcile", "shop"}, strings.Fields(flags)...)...)
		if got.Code != 0 || !strings.Contains(got.Out, want) || strings.Contains(got.Out, sentence) || !strings.Contains(got.Err, sentence) {
			t.Errorf("%s: want %q, and the sentence on stderr: %+v", flags, want, got)
		}
	}
	if got, h := runHandled(t, "reconcile", "shop", "-o", "table"); got.Code != program.Failed || !h.deadline.IsZero() {
		t.Errorf("an unknown format is not refused before something is sent: %+v", got)
	}
	if got, _ := runHandled(t, "reconcile", "shop"); !strings.Contains(got.Out, sentence) {
		t.Errorf("without -o: %+v", got)
	}
}

// Go's durations have no days, so each flag must read them.
func TestTimeoutInDaysIsThatLong(t *testing.T) {
	const week = 7 * 24 * time.Hour
	got, h := runHandled(t, "reconcile", "shop", "--timeout", "7d")
	if left := time.Until(h.deadline); got.Code != 0 || left > week || left < week-time.Minute {
		t.Errorf("it waits for %s: %+v", left, got)
	}
	found := 0
	for _, verb := range NewRoot(program.New("", genericiooptions.NewTestIOStreamsDiscard())).Commands() {
		timeout := verb.Flags().Lookup("timeout")
		if timeout == nil {
			continue
		}
		found++
		if err := verb.ParseFlags([]string{"--timeout", "7d"}); err != nil || timeout.Value.String() != week.String() {
			t.Errorf("%s waits for %s: %v", verb.Name(), timeout.Value, err)
		}
	}
	if found < 5 {
		t.Errorf("only %d verbs have a timeout", found)
	}
	created := exported(t, strings.Fields("create rollout shop --image registry.example.com/shop --oci-repository shop --timeout 7d --bake 1d"))
	for _, want := range []string{"deployTimeout: 168h0m0s", "bakeTime: 24h0m0s"} {
		if !strings.Contains(created, want) {
			t.Errorf("there is no %s in\n%s", want, created)
		}
	}
}
