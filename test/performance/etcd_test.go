// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestCopyHasNamesAndIdentitiesOfItsOwn(t *testing.T) {
	first := []pair{
		{[]byte("/registry/kuberik.com/rollouts/team-000/app-00000"), []byte(`{"metadata":{"name":"app-00000","namespace":"team-000","uid":"one"}}`)},
		{[]byte("/registry/kuberik.com/healthchecks/team-000/app-00000"), []byte(`{"metadata":{"uid":"two","annotations":{"reset-by-one":"x"}}}`)},
	}
	f := fleet{rollouts: 20, namespaces: 5}
	copied := f.copies(first, 7)
	if got := string(copied[0].Key); got != "/registry/kuberik.com/rollouts/team-002/app-00007" {
		t.Errorf("the key is %s", got)
	}
	own := string(ids.FindSubmatch(copied[0].Value)[1])
	if want := `{"metadata":{"name":"app-00007","namespace":"team-002","uid":"` + own + `"}}`; string(copied[0].Value) != want || own == "one" {
		t.Errorf("the copy is %s", copied[0].Value)
	}
	if !strings.Contains(string(copied[1].Value), "reset-by-"+own) {
		t.Errorf("what names the Rollout by its identity does not name its copy: %s", copied[1].Value)
	}
}
