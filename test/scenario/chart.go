// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"strings"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
)

// dashboards is a folder of the chart that Helm does not install.
const dashboards = "dashboards"

// Chart returns the release of a version as a Helm chart. It has a Deployment, and a
// folder with a ConfigMap next to the templates.
func (a App) Chart(version string) controlplane.Chart {
	// Helm fills in the version.
	deployment := strings.ReplaceAll(a.deployment("VERSION"), "VERSION", "{{ .Chart.AppVersion }}")
	return controlplane.Chart{Repository: a.Repository, Version: version, Files: map[string]string{
		"templates/deployment.yaml":    deployment,
		dashboards + "/configmap.yaml": a.configMap(version),
	}}
}

// ChartRepository returns the target whose tag the Rollout writes if the artifacts are
// charts. It passes charts on unchanged.
func (a App) ChartRepository(registryHost string) *sourcev1.OCIRepository {
	repository := a.OCIRepository(registryHost)
	repository.Spec.LayerSelector = &sourcev1.OCILayerSelector{
		MediaType: string(controlplane.ChartContentType), Operation: sourcev1.OCILayerCopy,
	}
	return repository
}

// DashboardsKustomization returns a Kustomization that applies the folder of the chart
// that Helm does not install.
func (a App) DashboardsKustomization() *kustomizev1.Kustomization {
	kustomization := a.Kustomization()
	kustomization.Spec.Path = "./" + a.Name + "/" + dashboards
	return kustomization
}

// HelmRelease returns a HelmRelease that installs the chart of the OCIRepository. Helm
// fails when the Deployment has exceeded its progress deadline, or after a minute.
func (a App) HelmRelease() *helmv2.HelmRelease {
	return &helmv2.HelmRelease{
		ObjectMeta: a.meta(),
		Spec: helmv2.HelmReleaseSpec{
			ChartRef: &helmv2.CrossNamespaceSourceReference{Kind: sourcev1.OCIRepositoryKind, Name: a.Name},
			Interval: metav1.Duration{Duration: time.Hour},
			Timeout:  &metav1.Duration{Duration: time.Minute},
		},
	}
}
