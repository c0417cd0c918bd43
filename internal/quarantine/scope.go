// SPDX-License-Identifier: Apache-2.0

package quarantine

import "fmt"

// Scope is the value of the flag --quarantine-scope, of the controller and of the command
// line. It is a value of both kinds of flags.
type Scope string

const (
	// ScopeNamespace lets only the ReleaseQuarantines of its own namespace count for a
	// Rollout. It is the default.
	ScopeNamespace Scope = "Namespace"
	// ScopeCluster lets those of all namespaces count.
	ScopeCluster Scope = "Cluster"
)

// String returns the scope.
func (s *Scope) String() string { return string(*s) }

// Type names the value in the help.
func (*Scope) Type() string { return "string" }

// Set reads the scope. It returns an error if the value is neither of the two.
func (s *Scope) Set(value string) error {
	switch Scope(value) {
	case ScopeNamespace, ScopeCluster:
		*s = Scope(value)
		return nil
	}
	return fmt.Errorf("it is %s or %s", ScopeNamespace, ScopeCluster)
}
