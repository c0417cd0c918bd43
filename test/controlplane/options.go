// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"io"
	"os"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// Options says which parts of a control plane the caller uses. The zero value
// is an API server on its etcd, with Flux's CRDs and a registry, which is what
// tests of a controller need.
type Options struct {
	// Workloads adds what makes a Deployment become Ready: the controller
	// manager, the scheduler and KWOK with one large fake node.
	Workloads bool
	// Flux adds source-controller and kustomize-controller.
	Flux bool
	// Helm adds helm-controller, and HelmCRDs.
	Helm bool
	// HelmCRDs adds the kind HelmRelease, which not every cluster has.
	HelmCRDs bool
	// Notifications adds notification-controller; Flux sends it its events.
	Notifications bool
	// ImageScanner adds image-reflector-controller, which needs ImageV1.
	ImageScanner bool

	// CRDPaths are files or folders with CRDs to install beside Flux's.
	CRDPaths []string
	// ImageVersion is the version at which ImagePolicy and ImageRepository
	// are served: v1 (the default), or v1beta2 as Flux 2.6 does.
	ImageVersion ImageVersion

	// Progress receives a line for each part that has to be built, and what
	// the building says. The default is standard error.
	Progress io.Writer
	// LogDir keeps a log file per part after Stop. Without it the logs are in
	// the temporary folder and vanish with it.
	LogDir string
}

// ImageVersion is a served version of image.toolkit.fluxcd.io.
type ImageVersion string

const (
	// ImageV1 is what Flux 2.7 and later serve.
	ImageV1 ImageVersion = "v1"
	// ImageV1Beta2 is the only usable version that Flux 2.6 serves.
	ImageV1Beta2 ImageVersion = "v1beta2"
)

// withDefaults fills in what the caller left open and refuses what no control
// plane can satisfy.
func (o Options) withDefaults() (Options, error) {
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	switch o.ImageVersion {
	case "":
		o.ImageVersion = ImageV1
	case ImageV1, ImageV1Beta2:
	default:
		return o, errors.New("image version " + string(o.ImageVersion) + " is not one Flux ever served alone")
	}
	if o.ImageScanner && o.ImageVersion != ImageV1 {
		return o, errors.New("image-reflector-controller reads only " + string(ImageV1) + ", which is not served beside image version " + string(o.ImageVersion))
	}
	return o, nil
}

// parts lists what the options ask for, those that others wait for first.
func (o Options) parts() []parts.Name {
	names := []parts.Name{parts.Etcd, parts.APIServer}
	if o.Workloads {
		names = append(names, parts.ControllerManager, parts.Scheduler, parts.KWOK)
	}
	if o.Flux {
		names = append(names, parts.SourceController, parts.KustomizeController)
	}
	if o.Helm {
		names = append(names, parts.HelmController)
	}
	if o.ImageScanner {
		names = append(names, parts.ImageReflectorController)
	}
	if o.Notifications {
		names = append(names, parts.NotificationController)
	}
	return names
}
