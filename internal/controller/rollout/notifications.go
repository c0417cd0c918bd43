// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Notifications delivers Flux events. Send does not wait for the delivery.
type Notifications interface {
	Send(eventv1.Event)
}

// Metadata of Flux events. notification-controller keeps keys with the prefix of its own
// group or of the object's, and strips the prefix.
const (
	metaPrefix     = eventv1.Group + "/"
	metaRollout    = metaPrefix + "rollout"
	metaFrom       = metaPrefix + "from"
	metaTo         = metaPrefix + "to"
	metaActor      = metaPrefix + "actor"
	metaGate       = metaPrefix + "gate"
	metaDeployment = metaPrefix + "deployment"
	metaCause      = metaPrefix + "cause"
	metaQuarantine = metaPrefix + "quarantine"
	metaCommand    = metaPrefix + "command" // what the user who is asked types
)

// Limits for text from users in events. Each target of a Rollout gets an event for each
// transition, and all events wait in memory while notification-controller is not
// reachable.
const (
	// mostKeys is how many annotations of the Rollout an event contains.
	mostKeys = 16
	// longestOfMetadata is how many characters of one of them.
	longestOfMetadata = 256
	// longestOfEvent is the maximum length of its message, as for a Kubernetes event.
	longestOfEvent = 1024
	// mostOnBehalf is how many targets get an event of their own.
	mostOnBehalf = 20
)

// notifier sends transitions as Flux events.
type notifier struct {
	client   client.Client
	to       Notifications // nil sends none
	instance string
}

// notify sends each transition for the Rollout itself, and on behalf of the Flux objects
// that it drives, because existing Alerts select those.
func (n notifier) notify(ctx context.Context, rollout *v1alpha1.Rollout, s gather.Snapshot, emitted []transition) {
	if n.to == nil || len(emitted) == 0 {
		return
	}
	driven := n.drivenObjects(ctx, rollout, s)
	for _, t := range emitted {
		if t.severity == "" {
			continue
		}
		event := n.fluxEvent(rollout, s.Input, t)
		for _, object := range driven {
			n.send(event, fmt.Sprintf("Rollout %s: %s", rollout.Name, t.message), object, rollout, t)
		}
		n.send(event, t.message, rollout, rollout, t)
	}
}

// drivenObjects returns the objects that the Rollout writes, or its ImagePolicy if there
// are none.
func (n notifier) drivenObjects(ctx context.Context, rollout *v1alpha1.Rollout, s gather.Snapshot) []client.Object {
	var driven []client.Object
	for _, t := range s.Found {
		if names(t, rollout.Name) {
			driven = append(driven, t.Object())
		}
	}
	if len(driven) > 0 {
		return driven[:min(len(driven), mostOnBehalf)]
	}
	policy := &imagev1.ImagePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: rollout.Namespace, Name: rollout.Spec.ReleasesImagePolicy.Name}}
	if err := n.client.Get(ctx, client.ObjectKeyFromObject(policy), policy); err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("the ImagePolicy is named in events without its UID", "error", err.Error())
	}
	return []client.Object{policy}
}

// fluxEvent returns the common part of the events of one transition. The Rollout's own
// metadata is set first and cannot replace ours.
func (n notifier) fluxEvent(rollout *v1alpha1.Rollout, in promotion.Input, t transition) eventv1.Event {
	metadata := ownMetadata(rollout.Annotations)
	maps.Copy(metadata, t.metadata)
	metadata[metaRollout] = rollout.Name
	maps.DeleteFunc(metadata, func(_, value string) bool { return value == "" })
	reason := t.reason
	if t.finer != "" {
		reason = t.finer
	}
	return eventv1.Event{
		Severity: t.severity, Timestamp: metav1.NewTime(in.Now), Reason: reason,
		Metadata: metadata, ReportingController: promotion.SystemName, ReportingInstance: n.instance,
	}
}

// ownMetadata returns the metadata that a Rollout adds to its events, sorted, up to
// mostKeys.
func ownMetadata(annotations map[string]string) map[string]string {
	metadata := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if strings.HasPrefix(key, metaPrefix) && len(metadata) < mostKeys {
			metadata[key] = truncate.Text(annotations[key], longestOfMetadata)
		}
	}
	return metadata
}

// send completes a copy of an event for its object. The token makes it different from all
// earlier events, even with the same text. Without it, notification-controller would drop
// it as a duplicate.
func (n notifier) send(event eventv1.Event, message string, object client.Object, rollout *v1alpha1.Rollout, t transition) {
	kind, err := n.client.GroupVersionKindFor(object)
	if err != nil {
		return // not a kind that the controller reads
	}
	event.Metadata = maps.Clone(event.Metadata) // each object's group has keys of its own
	event.Message, event.InvolvedObject = truncate.Text(message, longestOfEvent), reference(object, kind)
	event.Metadata[kind.Group+"/"+eventv1.MetaTokenKey] = fmt.Sprintf("%s/%s", rollout.UID, rollout.ResourceVersion)
	if t.release != nil {
		event.Metadata[kind.Group+"/"+eventv1.MetaRevisionKey] = revision(*t.release)
	}
	n.to.Send(event)
}

func reference(object client.Object, kind schema.GroupVersionKind) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName(),
		UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
	}
}

// revision returns a revision in the format of Flux for OCI artifacts.
func revision(release v1alpha1.VersionInfo) string {
	if release.Digest == nil || *release.Digest == "" {
		return release.Tag
	}
	return release.Tag + "@" + *release.Digest
}
