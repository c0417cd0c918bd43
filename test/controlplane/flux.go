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

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// FluxNamespace is the namespace that the Flux controllers are configured to run in.
const FluxNamespace = "flux-system"

// startFlux starts the Flux controllers that the options ask for.
func (c *ControlPlane) startFlux(ctx context.Context) error {
	if err := c.createFluxNamespace(ctx); err != nil {
		return err
	}
	controllers, err := c.fluxControllers()
	if err != nil {
		return err
	}
	var tasks []func() error
	for _, p := range controllers {
		tasks = append(tasks, func() error { return p.Start(ctx) })
	}
	return inParallel(tasks...)
}

// fluxControllers returns the controllers that the options ask for.
// notification-controller is first: the others send their events to its address.
func (c *ControlPlane) fluxControllers() ([]*Process, error) {
	var all []*Process
	for _, controller := range []struct {
		wanted bool
		make   func() (*Process, error)
	}{
		{c.options.Notifications, c.notificationController},
		{c.options.Flux, c.sourceController},
		{c.options.Flux, c.kustomizeController},
		{c.options.Helm, c.helmController},
		{c.options.ImageScanner, c.imageReflectorController},
	} {
		if !controller.wanted {
			continue
		}
		p, err := controller.make()
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
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
	storage, err := c.storage(parts.SourceController)
	if err != nil {
		return nil, err
	}
	return c.fluxController(parts.SourceController,
		storage,
		"--storage-addr="+address(port),
		"--storage-adv-addr="+address(port),
	)
}

func (c *ControlPlane) kustomizeController() (*Process, error) {
	return c.fluxController(parts.KustomizeController, c.gates()...)
}

func (c *ControlPlane) helmController() (*Process, error) {
	return c.fluxController(parts.HelmController, c.gates()...)
}

// gates returns the feature gates of the controllers that apply sources.
func (c *ControlPlane) gates() []string {
	if !c.options.ExternalArtifacts {
		return nil
	}
	return []string{"--feature-gates=ExternalArtifact=true"}
}

// imageReflectorController stores the tags that it finds in a database, which survives
// its restarts. A policy whose repository has not been scanned yet occupies one of its
// workers for five seconds. Therefore it has more workers than by default. Otherwise
// applications that are created at the same time would wait for each other.
func (c *ControlPlane) imageReflectorController() (*Process, error) {
	storage, err := c.storage(parts.ImageReflectorController)
	if err != nil {
		return nil, err
	}
	return c.fluxController(parts.ImageReflectorController, storage, "--concurrent=32")
}

// storage makes a folder for the data of a controller and returns the flag that sets its
// path.
func (c *ControlPlane) storage(name parts.Name) (flag string, err error) {
	folder := c.dir.file(string(name))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("make the storage of %s: %w", name, err)
	}
	return "--storage-path=" + folder, nil
}

// notificationController has a receiver for events and one for webhooks. The other
// controllers send their events to the first.
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

// fluxController adds the arguments that all controllers take. Each controller has its
// own folder for temporary files: kustomize-controller removes at its start all files
// that are named like its own, including those of other control planes.
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

// EventsURL returns the URL where notification-controller receives events. It is empty
// without notification-controller.
func (c *ControlPlane) EventsURL() string { return c.eventsURL }

// RequestReconcile asks Flux to reconcile an object now instead of at its next interval,
// as `flux reconcile` does. It does not wait for the reconciliation.
func (c *ControlPlane) RequestReconcile(ctx context.Context, object client.Object) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, meta.ReconcileRequestAnnotation, time.Now().Format(time.RFC3339Nano))
	if err := c.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("request a reconcile of %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}
