// SPDX-License-Identifier: Apache-2.0

package program

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// A command is for the namespace shop, and the kubeconfig has the contexts here, with that
// namespace, and there.
func TestCommandLineRepeatsTheConnection(t *testing.T) {
	const explains = "kubectl rollouts explain shop"
	for name, tt := range map[string]struct {
		given []string
		want  string
	}{
		"nothing":                     {nil, explains},
		"the namespace":               {[]string{"-n", "shop"}, explains + " -n shop"},
		"a context":                   {[]string{"--context", "there"}, explains + " --context=there -n shop"},
		"a context of this namespace": {[]string{"--context", "here"}, explains + " --context=here -n shop"},
		"a cluster":                   {[]string{"--cluster", "a"}, explains + " --cluster=a -n shop"},
		"a server":                    {[]string{"-s", "https://127.0.0.1:2"}, explains + " --server=https://127.0.0.1:2 -n shop"},
		"a user":                      {[]string{"--as", "a b", "--as-group", "x", "--as-group", "y"}, explains + " --as='a b' --as-group=x --as-group=y"},
		"a flag without a value":      {[]string{"--insecure-skip-tls-verify"}, explains + " --insecure-skip-tls-verify=true"},
		"secrets":                     {[]string{"--token", "t", "--client-key", "k", "--user", "u"}, explains + " --user=u"},
		"what is about this call":     {[]string{"--request-timeout", "1s"}, explains},
	} {
		t.Run(name, func(t *testing.T) {
			p := connected(t, tt.given...)
			if got := p.CommandLine("shop", "explain", "shop"); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	if got, want := connected(t).CommandLine("web", "explain", "shop"), explains+" -n web"; got != want {
		t.Errorf("for another namespace than that of the context: got %s, want %s", got, want)
	}
	file := filepath.Join(t.TempDir(), "other file")
	if got, want := connected(t, "--kubeconfig", file).CommandLine("shop", "explain", "shop"), explains+" --kubeconfig='"+file+"' -n shop"; got != want {
		t.Errorf("with another kubeconfig: got %s, want %s", got, want)
	}
	if got, want := connected(t, "--context=there").CommandLine("", "get", "-A"), "kubectl rollouts get -A --context=there"; got != want {
		t.Errorf("about no namespace: got %s, want %s", got, want)
	}
}

// connected returns a call with these flags.
func connected(t *testing.T, given ...string) *Program {
	t.Helper()
	p := New("kubectl rollouts", genericiooptions.NewTestIOStreamsDiscard())
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(`apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: here, context: {cluster: a, namespace: shop}}, {name: there, context: {cluster: a}}]
current-context: here
`), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Kubeconfig.KubeConfig = &file
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	p.AddConnectionFlags(flags)
	if err := flags.Parse(given); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestQuestionNamesTheCluster(t *testing.T) {
	for want, given := range map[string][]string{
		"context here": nil, "context there": {"--context", "there"}, "cluster a": {"--cluster", "a"}, "the cluster at https://127.0.0.1:2": {"-s", "https://127.0.0.1:2", "--context", "there"},
	} {
		if got := connected(t, given...).ClusterName(); got != want {
			t.Errorf("%q: got %q, want %q", given, got, want)
		}
	}
}

func TestWordsAreQuotedForAShell(t *testing.T) {
	for word, want := range map[string]string{
		"1.5.0": "1.5.0", "": "''", "$(rm -rf ~)": "'$(rm -rf ~)'", "it's": `'it'\''s'`, "a;b": "'a;b'", "#38": "'#38'",
	} {
		if got := quote(word); got != want {
			t.Errorf("%q: got %s, want %s", word, got, want)
		}
	}
}
