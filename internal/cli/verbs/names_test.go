// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNameIsTheOneThatTheUserTypes(t *testing.T) {
	type called struct {
		Name string
		Args []string
	}
	for name, tt := range map[string]struct {
		argv []string
		env  map[string]string
		want called
	}{
		"kubectl on the PATH":        {[]string{"kubectl-rollouts", "get"}, nil, called{"kubectl rollouts", []string{"get"}}},
		"kubectl with a path":        {[]string{"/usr/local/bin/kubectl-rollouts", "get"}, nil, called{"kubectl rollouts", []string{"get"}}},
		"kubectl on Windows":         {[]string{"kubectl-rollouts.exe"}, nil, called{"kubectl rollouts", []string{}}},
		"completion for kubectl":     {[]string{"kubectl_complete-rollouts", "get", "sh"}, nil, called{"kubectl rollouts", []string{"__complete", "get", "sh"}}},
		"installed by krew":          {[]string{"/home/a/.krew/bin/kubectl-flux_rollouts", "get"}, nil, called{"kubectl flux-rollouts", []string{"get"}}},
		"completion for krew":        {[]string{"kubectl_complete-flux_rollouts", "get", ""}, nil, called{"kubectl flux-rollouts", []string{"__complete", "get", ""}}},
		"a plugin of flux":           {[]string{"/home/a/.fluxcd/plugins/flux-rollout", "get"}, map[string]string{"HOME": "/home/a"}, called{"flux rollout", []string{"get"}}},
		"a plugin of flux elsewhere": {[]string{"/opt/plugins/flux-rollout"}, map[string]string{"FLUXCD_PLUGINS": "/opt/plugins/", "HOME": "/home/a"}, called{"flux rollout", []string{}}},
		"flux, by a relative path":   {[]string{"plugins/flux-rollout"}, map[string]string{"FLUXCD_PLUGINS": "./plugins"}, called{"flux rollout", []string{}}},
		"flux on Windows":            {[]string{"C:/Users/a/.fluxcd/plugins/flux-rollout.exe"}, map[string]string{"USERPROFILE": "C:/Users/a"}, called{"flux rollout", []string{}}},
		"by itself, without a HOME":  {[]string{".fluxcd/plugins/flux-rollout"}, nil, called{"flux-rollout", []string{}}},
		"by itself":                  {[]string{"/usr/bin/flux-rollout", "get"}, map[string]string{"HOME": "/home/a"}, called{"flux-rollout", []string{"get"}}},
		"by itself, on the PATH":     {[]string{"flux-rollout"}, nil, called{"flux-rollout", []string{}}},
		"by itself in the plugins":   {[]string{"flux-rollout"}, map[string]string{"FLUXCD_PLUGINS": "."}, called{"flux-rollout", []string{}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, args := calledAs(tt.argv, func(name string) string { return tt.env[name] })
			if diff := cmp.Diff(tt.want, called{got, args}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFileIsTheOneBehindTheCommand(t *testing.T) {
	for called, want := range map[string]string{
		"kubectl rollouts":      "kubectl-rollouts",
		"kubectl flux-rollouts": "kubectl-flux_rollouts",
		"flux rollout":          "flux-rollout",
		"flux-rollout":          "flux-rollout",
	} {
		if got := fileOf(called); got != want {
			t.Errorf("%q: got %s, want %s", called, got, want)
		}
	}
}
