// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package env

// OnTerminal returns a program that runs as this user. Terminals are opened on Linux only:
// elsewhere it writes into a pipe.
func (c *CommandLine) OnTerminal(program string, _ uint16) func(args ...string) string {
	c.t.Helper()
	run := c.Under(program)
	return func(args ...string) string {
		c.t.Helper()
		return run(args...).Stdout
	}
}
