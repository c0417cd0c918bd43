// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/imagescanner"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// FluxNamespace is the namespace in which Flux believes to run.
const FluxNamespace = "flux-system"

// startFlux starts the Flux controllers that the options ask for.
func (c *ControlPlane) startFlux(ctx context.Context) error {
	if err := c.createFluxNamespace(ctx); err != nil {
		return err
	}
	var tasks []func() error
	if c.options.Notifications {
		p, err := c.notificationController()
		if err != nil {
			return err
		}
		tasks = append(tasks, func() error { return p.Start(ctx) })
	}
	if c.options.Flux {
		source, err := c.sourceController()
		if err != nil {
			return err
		}
		kustomize, err := c.fluxController(parts.KustomizeController)
		if err != nil {
			return err
		}
		tasks = append(tasks, func() error { return source.Start(ctx) }, func() error { return kustomize.Start(ctx) })
	}
	return inParallel(tasks...)
}

func (c *ControlPlane) createFluxNamespace(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: FluxNamespace}}
	if err := c.client.Create(ctx, namespace); err != nil {
		return fmt.Errorf("create the namespace %s: %w", FluxNamespace, err)
	}
	return nil
}

func (c *ControlPlane) sourceController() (*Process, error) {
	port, err := c.ports.take()
	if err != nil {
		return nil, err
	}
	storage := c.dir.file("source-controller")
	if err := os.MkdirAll(storage, 0o755); err != nil {
		return nil, fmt.Errorf("make the artifact storage: %w", err)
	}
	return c.fluxController(parts.SourceController,
		"--storage-path="+storage,
		"--storage-addr="+address(port),
		"--storage-adv-addr="+address(port),
	)
}

// notificationController has a receiver for events, whose address the other
// controllers are told, and one for webhooks.
func (c *ControlPlane) notificationController() (*Process, error) {
	var events, receiver int
	if err := c.ports.takeAll(&events, &receiver); err != nil {
		return nil, err
	}
	c.eventsURL = "http://" + address(events) + "/"
	return c.fluxController(parts.NotificationController,
		"--events-addr="+address(events), // here the address to listen on
		"--receiverAddr="+address(receiver),
	)
}

// fluxController gives a controller what all of them take. Its temporary files are
// apart: at its start kustomize-controller removes all that are named as its own,
// those of other control planes as well.
func (c *ControlPlane) fluxController(name parts.Name, args ...string) (*Process, error) {
	var metrics, health int
	if err := c.ports.takeAll(&metrics, &health); err != nil {
		return nil, err
	}
	args = append([]string{
		"--enable-leader-election=false",
		"--metrics-addr=" + address(metrics),
		"--health-addr=" + address(health),
		"--events-addr=" + c.eventsURL,
		"--log-level=debug",
	}, args...)
	temporary := c.dir.file("tmp", string(name))
	if err := os.MkdirAll(temporary, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder for temporary files of %s: %w", name, err)
	}
	p := c.process(name, args...)
	p.Env = append(p.Env, "RUNTIME_NAMESPACE="+FluxNamespace, "KUBECONFIG="+c.kubeconfig, "TMPDIR="+temporary)
	p.ready = answersOK(http.DefaultClient, "http://"+address(health)+"/readyz")
	return p, nil
}

// EventsURL is where notification-controller takes events; empty without it.
func (c *ControlPlane) EventsURL() string { return c.eventsURL }

func (c *ControlPlane) startImageScanner(ctx context.Context) (err error) {
	if !c.options.ImageScanner {
		return nil
	}
	c.Images, err = imagescanner.Start(ctx, c.RESTConfig(), string(c.options.ImageVersion))
	return err
}

// RequestReconcile asks Flux to look at an object now and not at its next interval,
// as `flux reconcile` does. It does not wait until Flux has.
func (c *ControlPlane) RequestReconcile(ctx context.Context, object client.Object) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, meta.ReconcileRequestAnnotation, time.Now().Format(time.RFC3339Nano))
	if err := c.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("request a reconcile of %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}
