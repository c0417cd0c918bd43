// SPDX-License-Identifier: Apache-2.0

// Package installation says which Deployments of the controller are in a cluster: of which
// version, and for what each acts. It is pure: the caller reads the objects.
package installation

import (
	"slices"
	"strings"

	"github.com/fluxcd/pkg/runtime/leaderelection"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Lease is the Lease that the replicas of the controller compete for. Instances with a
// label selector add its hash.
const Lease = "8108ddc4.kuberik.com"

// NameLabel names the program that an object belongs to. All installations set it on the
// Deployment and on its pods.
const NameLabel = "app.kubernetes.io/name"

// PodLabels are on the pods of each instance, whatever its name.
var PodLabels = labels.Set{NameLabel: "rollout-controller", "control-plane": "controller-manager"}

// container is the container of the controller.
const container = "manager"

// VersionLabel has the version of the release, on what a chart has installed.
const VersionLabel = "app.kubernetes.io/version"

// Instance is a Deployment of the controller.
type Instance struct {
	Namespace, Name string
	// Version is the tag of its image; without a tag, the version of the chart, or else the
	// whole image.
	Version string
	// Ready and Wanted count its pods.
	Ready, Wanted int32
	// Selector selects the objects for which it acts, by their labels.
	Selector labels.Selector
	// Only is the namespace to which it is limited; empty if it acts in all.
	Only string
	// Promotes is false if it acts for no Rollouts, and Environments if for none of those.
	Promotes, Environments bool
	// Reports is false if it neither writes nor reads reports of environments.
	Reports bool
	// ClusterName is what its reports call the cluster. SigningKeySecret and
	// TrustedKeysSecret are the Secrets in its namespace with the keys of reports. Each of
	// them is empty if the flag is not set.
	ClusterName, SigningKeySecret, TrustedKeysSecret string
	// TrustsNames is true if approvals count although no policy checks the names in them.
	TrustsNames bool
}

// InstanceOf returns the instance that a Deployment runs. It is false for a Deployment
// that does not run the controller.
func InstanceOf(d *appsv1.Deployment) (Instance, bool) {
	pod := d.Spec.Template
	at := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == container })
	if at < 0 || !PodLabels.AsSelector().Matches(labels.Set(pod.Labels)) {
		return Instance{}, false
	}
	c := pod.Spec.Containers[at]
	flags := flagsOf(c)
	i := Instance{
		Namespace: d.Namespace, Name: d.Name, Version: versionOf(c.Image, d.Labels[VersionLabel]),
		Ready: d.Status.ReadyReplicas, Wanted: 1,
		Selector: flags.selector(), Promotes: flags.starts("rollout"), Environments: flags.starts("environment"),
		Reports: flags.allows("EnvironmentReports"), ClusterName: flags["cluster-name"],
		SigningKeySecret: flags["signing-key-secret"], TrustedKeysSecret: flags["trusted-keys-secret"],
		TrustsNames: flags["approval-identity"] == "Trusted",
	}
	if d.Spec.Replicas != nil {
		i.Wanted = *d.Spec.Replicas
	}
	if flags["watch-all-namespaces"] == "false" {
		i.Only = d.Namespace
	}
	return i, true
}

// coordinatorPods are on the pods of an installation that only coordinates Deployments.
var coordinatorPods = labels.Set{NameLabel: "kube-deployment-coordinator", "control-plane": "controller-manager"}

// Coordinates reports whether a Deployment may run the controller that lets Deployments roll
// out one at a time: no flag keeps it from that, and it has replicas. Whether it has the
// rights is not known.
func Coordinates(d *appsv1.Deployment) bool {
	pod := d.Spec.Template
	set := labels.Set(pod.Labels)
	at := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == container })
	if at < 0 || d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
		return false
	}
	if coordinatorPods.AsSelector().Matches(set) {
		return true
	}
	flags := flagsOf(pod.Spec.Containers[at])
	return PodLabels.AsSelector().Matches(set) && flags.starts("deploymentcoordination") &&
		(flags["watch-label-selector"] == "" || strings.Contains(flags["controllers"], "deploymentcoordination"))
}

// LeaseName returns the name of the Lease of its replicas.
func (i Instance) LeaseName() string { return leaseName(i.Selector) }

func leaseName(selector labels.Selector) string {
	if selector.Empty() {
		return Lease
	}
	return leaderelection.GenerateID(Lease, selector.String())
}

// ActsFor reports whether it acts for a Rollout of a namespace with these labels.
func (i Instance) ActsFor(namespace string, set labels.Set) bool {
	return i.Promotes && (i.Only == "" || i.Only == namespace) && i.Selector.Matches(set)
}

// versionOf returns the tag of an image.
func versionOf(image, ofChart string) string {
	name, _, _ := strings.Cut(image, "@")
	if at := strings.LastIndex(name, ":"); at > strings.LastIndex(name, "/") {
		return name[at+1:]
	}
	if ofChart != "" {
		return ofChart
	}
	return image
}

// flags are the flags of a container, without their hyphens.
type flags map[string]string

// flagsOf returns the flags as package flag reads them: with one hyphen or two, and with
// the value after an equals sign or as the next argument.
func flagsOf(c corev1.Container) flags {
	all := flags{}
	args := slices.Concat(c.Command, c.Args)
	for i, arg := range args {
		name, isFlag := strings.CutPrefix(arg, "-")
		if !isFlag {
			continue
		}
		name, value, hasValue := strings.Cut(strings.TrimPrefix(name, "-"), "=")
		if !hasValue && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			value = args[i+1]
		}
		all[name] = value
	}
	return all
}

// selector returns the selector of the instance. An instance whose selector cannot be
// parsed does not start, and acts for nothing.
func (f flags) selector() labels.Selector {
	selector, err := labels.Parse(f["watch-label-selector"])
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// starts reports whether a controller that is on by default is among those that are
// started.
func (f flags) starts(controller string) bool {
	list, given := f["controllers"]
	if !given {
		return true
	}
	on := false
	for item := range strings.SplitSeq(list, ",") {
		switch strings.TrimSpace(item) {
		case "-" + controller:
			return false
		case controller, "*":
			on = true
		}
	}
	return on
}

// allows reports whether a feature that is on by default is not turned off.
func (f flags) allows(feature string) bool {
	on := true
	for gate := range strings.SplitSeq(f["feature-gates"], ",") {
		if name, value, _ := strings.Cut(strings.TrimSpace(gate), "="); name == feature {
			on = !strings.EqualFold(value, "false")
		}
	}
	return on
}
