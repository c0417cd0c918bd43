// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestCurrentContextIsThatOfTheKubeconfig(t *testing.T) {
	for name, tt := range map[string]struct{ config, want string }{
		"no kubeconfig":                 {"", ""},
		"no context":                    {"apiVersion: v1\nkind: Config\n", ""},
		"a context that does not exist": {"apiVersion: v1\nkind: Config\ncurrent-context: gone\n", ""},
		"a context":                     {"apiVersion: v1\nkind: Config\ncurrent-context: kind\ncontexts:\n- name: kind\n  context: {cluster: kind, user: kind}\n", "kind"},
	} {
		t.Run(name, func(t *testing.T) {
			g, path := NewWithT(t), filepath.Join(t.TempDir(), "config")
			if tt.config != "" {
				g.Expect(os.WriteFile(path, []byte(tt.config), 0o600)).To(Succeed())
			}
			t.Setenv("KUBECONFIG", path)
			g.Expect(currentContext()).To(Equal(tt.want))
		})
	}
	t.Setenv("KUBECONFIG", "main.go")
	_, err := currentContext()
	NewWithT(t).Expect(err).To(HaveOccurred(), "a file that is no kubeconfig")
}

func TestRunThatIsStoppedIsNoError(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(context.Background())
	g.Expect(ended(ctx, nil)).To(MatchError("the controller has ended"))
	g.Expect(ended(ctx, errors.New("exit status 2"))).To(MatchError("the controller has ended: exit status 2"))
	cancel()
	g.Expect(ended(ctx, errors.New("signal: terminated"))).To(Succeed())
}
