// SPDX-License-Identifier: Apache-2.0

// Package child says how the processes of a control plane depend on the one that
// starts them. It has the system calls that not every system has.
package child
