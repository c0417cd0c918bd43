// SPDX-License-Identifier: Apache-2.0

package statefulsetrollout

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

func TestSampleRollsZoneByZone(t *testing.T) {
	s := open(t)
	content, err := os.ReadFile(filepath.Join(parts.Root(), "config", "statefulset-rollout", "samples", "zones.yaml"))
	s.Expect(err).NotTo(HaveOccurred())
	decoder := serializer.NewCodecFactory(clientgoscheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var zones []string
	for _, document := range bytes.Split(content, []byte("\n---\n")) {
		object, _, err := decoder.Decode(document, nil, nil)
		s.Expect(err).NotTo(HaveOccurred())
		o := object.(client.Object)
		o.SetNamespace(s.Namespace)
		if set, ok := o.(*appsv1.StatefulSet); ok {
			zones = append(zones, set.Name)
			set.Spec.MinReadySeconds = 1 // enough for this test
		}
		s.Expect(s.Create(s.Ctx, o)).To(Succeed())
	}
	s.Expect(zones).To(Equal([]string{"store-zone-a", "store-zone-b"}))
	for _, zone := range zones {
		s.comesUp(zone)
	}
	for _, zone := range zones {
		s.release("2.0.0", zone)
	}
	s.play(t)
	for _, zone := range zones {
		s.isPromoted(zone)
	}
	s.Expect(s.guard.took()).To(Equal([]string{
		"store-zone-a-0", "store-zone-a-1", "store-zone-a-2", "store-zone-b-0", "store-zone-b-1", "store-zone-b-2",
	}))
	s.Expect(s.warnings()).To(BeEmpty())
}
