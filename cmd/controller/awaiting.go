// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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

// settling defines how long after a change of a CRD the controller checks whether the API
// server serves the kind. This takes a moment.
var settling = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Steps: 7}

// crds are the names of the CRDs that controllers wait for. The manager role may read only
// these. The others wait for any CRD.
var crds = map[string]string{environmentController: environmentCRD, quarantineController: quarantineCRD, clusterGateController: clusterGateCRD}

// awaiting ends the process once everything that a controller waits for is served. The
// process is then restarted with that controller.
type awaiting struct {
	cluster
	crd         string // the only CRD that it watches; empty for all
	controllers []string
	metadata    metadata.Interface
}

// awaitKinds makes the manager watch for the kinds of controllers that stay off. Without
// the right to read their CRDs, the user has to restart the process.
func awaitKinds(ctx context.Context, mgr ctrl.Manager, on cluster, controllers []string) error {
	waiting := map[string][]string{}
	for _, name := range controllers {
		waiting[crds[name]] = append(waiting[crds[name]], name)
	}
	for _, crd := range slices.Sorted(maps.Keys(waiting)) {
		if err := awaitKindsOf(ctx, mgr, &awaiting{cluster: on, crd: crd, controllers: waiting[crd]}); err != nil {
			return err
		}
	}
	return nil
}

func awaitKindsOf(ctx context.Context, mgr ctrl.Manager, a *awaiting) error {
	read := right{group: definitions.Group, resource: definitions.Resource, name: a.crd}
	if missing, err := a.lacksReading(ctx, read, ""); missing.verb != "" || err != nil {
		return err
	}
	client, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("prepare to watch CRDs: %w", err)
	}
	a.metadata = client
	return mgr.Add(a)
}

// NeedLeaderElection returns false: every replica waits, because each may lead next.
func (*awaiting) NeedLeaderElection() bool { return false }

// Start watches CRDs until ctx ends. It returns an error if a restart is due.
func (a *awaiting) Start(ctx context.Context) error {
	return awaitCRD(ctx, a.metadata, a.crd, func() (bool, error) {
		if name := a.served(ctx); name != "" {
			return true, fmt.Errorf("everything is served now that the controller %s needs: it begins with a new process", name)
		}
		return false, nil
	})
}

// awaitCRD calls done whenever a CRD of that name exists or has changed. An empty name
// means all CRDs. It stops watching and returns when done returns true or an error, or
// when ctx ends.
func awaitCRD(ctx context.Context, from metadata.Interface, name string, done func() (bool, error)) error {
	changed := make(chan struct{}, 1)
	look := func(any) {
		select {
		case changed <- struct{}{}:
		default: // a check is already due
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

// only selects the object with a name, because an account may only have the right to this
// one.
func only(name string) func(*metav1.ListOptions) {
	return func(options *metav1.ListOptions) {
		if name != "" {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		}
	}
}

// served returns a controller for which every kind is served. It is empty if there is
// none, although a CRD has changed.
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

// justName removes everything from a CRD except its identity.
func justName(o any) (any, error) {
	if crd, ok := o.(*metav1.PartialObjectMetadata); ok {
		crd.ObjectMeta = metav1.ObjectMeta{Name: crd.Name, UID: crd.UID, ResourceVersion: crd.ResourceVersion}
	}
	return o, nil
}
