// SPDX-License-Identifier: Apache-2.0

// Package child defines how the processes of a control plane depend on the process that
// starts them. It has the system calls that differ between operating systems.
package child
