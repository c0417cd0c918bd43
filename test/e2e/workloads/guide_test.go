// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// follow runs the commands of a guide that come after a sentence, for this application
// instead of the one of the guides.
func (f *fleet) follow(guide, sentence string) {
	f.T.Helper()
	built, err := parts.Build(f.T.Context(), os.Stderr, parts.Kubectl)
	if err != nil {
		f.T.Fatal(err)
	}
	commands := strings.NewReplacer(
		"-n podinfo", "-n "+f.Namespace,
		"deploymentcoordination podinfo", "deploymentcoordination "+f.Name,
		"rollout=in-turn", scenario.MemberLabel+"="+f.Name,
	).Replace(commandsIn(f, guide, sentence))
	script := "kubectl() { " + built[parts.Kubectl] + ` "$@"; }; cd ` + f.T.TempDir() + "\n" + commands
	if answer := f.CommandLine(f.Namespace+":ida", "system:masters").Shell(script); answer.Code != 0 {
		f.T.Errorf("%d\n%s%s", answer.Code, answer.Stdout, answer.Stderr)
	}
}

// commandsIn returns the commands of a guide that come after a sentence.
func commandsIn(f *fleet, guide, sentence string) string {
	f.T.Helper()
	page, err := os.ReadFile(filepath.Join(parts.Root(), "docs", "guides", guide))
	if err != nil {
		f.T.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), sentence)
	_, rest, begun := strings.Cut(rest, "```sh\n")
	commands, _, ended := strings.Cut(rest, "```")
	if !found || !begun || !ended {
		f.T.Fatalf("%s has no commands after %q", guide, sentence)
	}
	return commands
}
