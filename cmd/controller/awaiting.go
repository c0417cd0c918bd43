// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// settling is how long after a change of a CRD the API server is asked whether it
// serves the kind: it takes a moment.
var settling = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Steps: 7}

// awaiting ends the process when everything is served that a controller waits
// for, so that it is started again, with that controller.
type awaiting struct {
	cluster
	controllers []string
	metadata    metadata.Interface
}

// awaitKinds has the manager watch for the kinds of controllers that stay off. Who
// may not read CRDs has to start the process again.
func awaitKinds(ctx context.Context, mgr ctrl.Manager, on cluster, controllers []string) error {
	if len(controllers) == 0 {
		return nil
	}
	for _, verb := range []string{"list", "watch"} {
		if allowed, err := on.allows(ctx, right{verb: verb, group: definitions.Group, resource: definitions.Resource}, ""); err != nil || !allowed {
			return err
		}
	}
	client, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("prepare to watch CRDs: %w", err)
	}
	return mgr.Add(&awaiting{cluster: on, controllers: controllers, metadata: client})
}

// NeedLeaderElection says that every replica waits: each may lead next.
func (*awaiting) NeedLeaderElection() bool { return false }

// Start watches CRDs until ctx ends, or it is time to start again, which is an
// error.
func (a *awaiting) Start(ctx context.Context) error {
	return awaitCRD(ctx, a.metadata, "", func() (bool, error) {
		if name := a.served(ctx); name != "" {
			return true, fmt.Errorf("everything is served now that the controller %s needs: it begins with a new process", name)
		}
		return false, nil
	})
}

// awaitCRD asks whether all is done whenever there is a CRD of that name, or it has
// changed; no name stands for all of them. It ends with the answer yes, an error, or
// ctx, and then watches no more.
func awaitCRD(ctx context.Context, from metadata.Interface, name string, done func() (bool, error)) error {
	changed := make(chan struct{}, 1)
	look := func(any) {
		select {
		case changed <- struct{}{}:
		default: // it is about to
		}
	}
	informer := metadatainformer.NewFilteredMetadataInformer(from, definitions, metav1.NamespaceAll, 0, nil, only(name)).Informer()
	_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, o any) { look(o) }})
	if err = errors.Join(err, informer.SetTransform(justName)); err != nil {
		return fmt.Errorf("watch CRDs: %w", err)
	}
	ended := make(chan struct{})
	defer func() { <-ended }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() { defer close(ended); informer.RunWithContext(ctx) }()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			if enough, err := done(); enough || err != nil {
				return err
			}
		}
	}
}

// only asks for the object of a name, which may be all that an account may see.
func only(name string) func(*metav1.ListOptions) {
	return func(options *metav1.ListOptions) {
		if name != "" {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		}
	}
}

// served returns a controller of which every kind is served; empty if there is
// none, though a CRD has changed.
func (a *awaiting) served(ctx context.Context) string {
	var found string
	_ = wait.ExponentialBackoffWithContext(ctx, settling, func(context.Context) (bool, error) {
		for _, name := range a.controllers {
			if lack, err := a.missing(name); lack == nil && err == nil {
				found = name
			}
		}
		return found != "", nil
	})
	return found
}

// justName keeps of a CRD that it is there.
func justName(o any) (any, error) {
	if crd, ok := o.(*metav1.PartialObjectMetadata); ok {
		crd.ObjectMeta = metav1.ObjectMeta{Name: crd.Name, UID: crd.UID, ResourceVersion: crd.ResourceVersion}
	}
	return o, nil
}
