// SPDX-License-Identifier: Apache-2.0

package program

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/utils/ptr"
)

// unrepeated are the flags that no command repeats: what is secret, and what is only about
// this call. The namespace comes last.
var unrepeated = []string{"token", "client-key", "request-timeout", "namespace"}

// AddConnectionFlags adds the flags that choose a cluster, a user and a namespace.
func (p *Program) AddConnectionFlags(flags *pflag.FlagSet) {
	p.connection = pflag.NewFlagSet("connection", pflag.ContinueOnError)
	p.Kubeconfig.AddFlags(p.connection)
	flags.AddFlagSet(p.connection)
}

// CommandLine returns a command that can be copied to a shell. It asks the same cluster as
// this call, as the same user, for a namespace. Without a namespace, it is about none.
func (p *Program) CommandLine(namespace string, args ...string) string {
	return p.CommandLineOf(p.Called, namespace, args...)
}

// CommandHere returns a command for the namespace of this call.
func (p *Program) CommandHere(args ...string) string {
	namespace, _ := p.Namespace() // without kubeconfig, there is none
	return p.CommandLine(namespace, args...)
}

// CommandLineOf returns a command of another program that has the flags of kubectl. That of
// flux always names the namespace: flux does not take the one of the context.
func (p *Program) CommandLineOf(called, namespace string, args ...string) string {
	words := []string{called}
	for _, arg := range args {
		words = append(words, quote(arg))
	}
	words = append(words, p.connectionFlags()...)
	if namespace != "" && called == "flux" || p.mustName(namespace) {
		words = append(words, "-n", quote(namespace))
	}
	return strings.Join(words, " ")
}

// unknownContext stands for the context of a cluster that only files are known of. There is
// none of that name, so that a command that is pasted as it is changes nothing.
const unknownContext = "--context=CONTEXT"

// connectionFlags returns the flags of this call that choose a cluster and a user.
func (p *Program) connectionFlags() []string {
	var all []string
	if p.offline && !p.choosesCluster() {
		all = append(all, unknownContext)
	}
	p.connection.VisitAll(func(flag *pflag.Flag) {
		if !flag.Changed || slices.Contains(unrepeated, flag.Name) {
			return
		}
		values := []string{flag.Value.String()}
		if several, ok := flag.Value.(pflag.SliceValue); ok {
			values = several.GetSlice()
		}
		for _, value := range values {
			all = append(all, "--"+flag.Name+"="+quote(value))
		}
	})
	return all
}

// mustName reports whether a command has to name its namespace: because this call did,
// because it chose another cluster than kubeconfig does, or because the namespace is not
// that of the context.
func (p *Program) mustName(namespace string) bool {
	switch {
	case namespace == "":
		return false
	case ptr.Deref(p.Kubeconfig.Namespace, "") != "", p.choosesCluster(), p.offline, p.AnsweredFrom != "":
		return true
	}
	usual, err := p.usualNamespace()
	return err != nil || usual != namespace
}

// choosesCluster reports whether the call names a cluster.
func (p *Program) choosesCluster() bool {
	k := p.Kubeconfig
	return cmp.Or(ptr.Deref(k.Context, ""), ptr.Deref(k.ClusterName, ""), ptr.Deref(k.APIServer, "")) != "" || p.connection.Changed("kubeconfig")
}

// ClusterName names the cluster that is asked, by what was given or by the context of
// kubeconfig; empty if there is none.
func (p *Program) ClusterName() string {
	if p.AnsweredFrom != "" {
		return p.AnsweredFrom
	}
	k := p.Kubeconfig
	config, err := k.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		config.CurrentContext = ""
	}
	switch context := cmp.Or(ptr.Deref(k.Context, ""), config.CurrentContext); {
	case ptr.Deref(k.APIServer, "") != "":
		return "the cluster at " + *k.APIServer
	case ptr.Deref(k.ClusterName, "") != "":
		return "cluster " + *k.ClusterName
	case context != "":
		return "context " + context
	}
	return ""
}

// plainWord needs no quotes in any shell.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quote quotes a word for a POSIX shell.
func quote(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
