// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"path"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
)

// packagedVersion is the only version of the packaged chart.
const packagedVersion = "7.0.0"

// PackagedChart returns a chart that is not released with the application. The tag of the
// image is a value of it, and so are notes for a ConfigMap.
func (a App) PackagedChart() controlplane.Chart {
	deployment := strings.ReplaceAll(a.deployment("VERSION"), "VERSION", "{{ .Values.image.tag }}")
	config := strings.ReplaceAll(a.configMap("VERSION"), `"VERSION"`, "{{ .Values.notes.version | quote }}")
	return controlplane.Chart{Repository: a.Repository + "-chart", Version: packagedVersion, Files: map[string]string{
		"templates/deployment.yaml": deployment,
		"templates/configmap.yaml":  config,
		"values.yaml":               "image: {tag: none}\nnotes: {version: none}\n",
	}}
}

// HelmRepository returns the repository of the packaged chart.
func (a App) HelmRepository(registryHost string) *sourcev1.HelmRepository {
	return &sourcev1.HelmRepository{
		ObjectMeta: a.meta(),
		Spec: sourcev1.HelmRepositorySpec{
			Type: sourcev1.HelmRepositoryTypeOCI, Insecure: true, URL: "oci://" + path.Join(registryHost, path.Dir(a.Repository)),
		},
	}
}

// PackagedHelmRelease returns a HelmRelease that installs the packaged chart. The Rollout
// writes the tag of the image into its values.
func (a App) PackagedHelmRelease() *helmv2.HelmRelease {
	release := a.HelmRelease()
	release.Annotations = map[string]string{v1alpha1.ValuesAnnotationPrefix + "image.tag" + v1alpha1.ValuesAnnotationSuffix: a.Name}
	release.Spec.ChartRef = nil
	release.Spec.Chart = &helmv2.HelmChartTemplate{Spec: helmv2.HelmChartTemplateSpec{
		Chart: path.Base(a.Repository) + "-chart", Version: packagedVersion, Interval: &metav1.Duration{Duration: release.Spec.Interval.Duration},
		SourceRef: helmv2.CrossNamespaceObjectReference{Kind: sourcev1.HelmRepositoryKind, Name: a.Name},
	}}
	release.Spec.Values = &apiextensionsv1.JSON{Raw: []byte(`{"notes":{"version":"by the user"}}`)}
	return release
}
