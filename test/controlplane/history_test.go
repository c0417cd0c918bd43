// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"fmt"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

func TestHistoryHasEveryStateAcrossOutages(t *testing.T) {
	t.Parallel()
	s := start(t, controlplane.Options{})
	s.create(shopRepository(s.Registry.Host(), "1.0.0"))
	restart := func(name parts.Name) {
		t.Helper()
		if err := s.Part(name).Kill(); err != nil {
			t.Fatal(err)
		}
		if err := s.Part(name).Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	restart(parts.APIServer)
	repository := shopRepository(s.Registry.Host(), "1.0.0")
	eventually(s, repository, "the repository after an outage", func(*sourcev1.OCIRepository) bool { return true })
	s.deploy("1.1.0")
	restart(parts.Etcd)
	eventually(s, repository, "the repository after another", func(r *sourcev1.OCIRepository) bool {
		r.Spec.Reference.Tag = "1.2.0"
		return s.Client().Update(t.Context(), r) == nil
	})
	if err := s.Client().Delete(t.Context(), repository); err != nil {
		t.Fatal(err)
	}

	states, err := s.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	before := uint64(0)
	for _, state := range states {
		if state.Revision <= before {
			t.Errorf("revision %d comes after %d", state.Revision, before)
		}
		before = state.Revision
		if state.Object.GetKind() == sourcev1.OCIRepositoryKind {
			tag := state.Object.Object["spec"].(map[string]any)["ref"].(map[string]any)["tag"]
			got = append(got, fmt.Sprintf("%s %v, deleted %t", client.ObjectKeyFromObject(state.Object), tag, state.Deleted))
		}
	}
	want := []string{
		"default/shop 1.0.0, deleted false", "default/shop 1.1.0, deleted false",
		"default/shop 1.2.0, deleted false", "default/shop 1.2.0, deleted true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("states of the repository (-want +got):\n%s", diff)
	}
}
