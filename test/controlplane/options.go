// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"io"
	"os"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// Options selects the parts of a control plane that the caller uses. The zero value is an
// API server with etcd, Flux's CRDs and a registry. Tests of a controller need these.
type Options struct {
	// Workloads adds the parts that make a Deployment Ready: the controller manager, the
	// scheduler and KWOK with one large fake node.
	Workloads bool
	// Flux adds source-controller and kustomize-controller.
	Flux bool
	// Helm adds helm-controller and HelmCRDs.
	Helm bool
	// HelmCRDs adds the kind HelmRelease, which not every cluster has.
	HelmCRDs bool
	// ExternalArtifacts lets kustomize-controller and helm-controller apply ExternalArtifacts.
	ExternalArtifacts bool
	// Notifications adds notification-controller. Flux sends its events to it.
	Notifications bool
	// ImageScanner adds image-reflector-controller, which needs ImageV1.
	ImageScanner bool

	// Name distinguishes this control plane from others of the same process: it is part of
	// the names of its log files and of its temporary folder, and its errors name it.
	Name string
	// Registry is the registry of another control plane, or of OpenRegistry. It is not
	// stopped with this control plane. Without it, the control plane has a registry of its
	// own.
	Registry *Registry

	// CRDPaths are files or folders with CRDs to install in addition to Flux's.
	CRDPaths []string
	// ImageVersion is the version at which ImagePolicy and ImageRepository are served: v1
	// (the default), or v1beta2 as in Flux 2.6.
	ImageVersion ImageVersion

	// Env is added to the environment of each part.
	Env []string
	// Progress receives a line for each part that has to be built, and the progress of
	// the build. The default is standard error.
	Progress io.Writer
	// LogDir is the folder for one log file per part, which remains after Stop. Without
	// it the logs are in the temporary folder and are removed with it.
	LogDir string
}

// ImageVersion is a served version of image.toolkit.fluxcd.io.
type ImageVersion string

const (
	// ImageV1 is the version that Flux 2.7 and later serve.
	ImageV1 ImageVersion = "v1"
	// ImageV1Beta2 is the only usable version that Flux 2.6 serves.
	ImageV1Beta2 ImageVersion = "v1beta2"
)

// withDefaults sets the defaults and returns an error if no control plane can satisfy the
// options.
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
		return o, errors.New("image-reflector-controller reads only " + string(ImageV1) + ", which is not served next to image version " + string(o.ImageVersion))
	}
	return o, nil
}

// parts returns the parts that the options ask for. Parts that others wait for are first.
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
