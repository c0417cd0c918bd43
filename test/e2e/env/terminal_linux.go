// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// OnTerminal returns a program that runs as this user on a terminal so many columns wide. It
// returns what a command leaves on the terminal, without colours.
func (c *CommandLine) OnTerminal(program string, columns uint16) func(args ...string) string {
	c.t.Helper()
	folder := c.Plugins()
	return func(args ...string) string {
		c.t.Helper()
		command := exec.CommandContext(c.t.Context(), program, args...)
		command.Env = append(os.Environ(), "PATH="+folder+string(os.PathListSeparator)+os.Getenv("PATH"), "NO_COLOR=1", "TERM=xterm", "LANG=C.UTF-8")
		text, err := onTerminal(c.t.Context(), c.command(command), columns)
		if err != nil {
			c.t.Fatalf("run %s: %v\n%s", command, err, text)
		}
		return text
	}
}

// onTerminal runs a command on a terminal, and returns what it has written.
func onTerminal(ctx context.Context, command *exec.Cmd, columns uint16) (string, error) {
	screen, display, err := openTerminal(columns)
	if err != nil {
		return "", err
	}
	defer func() { _ = screen.Close() }()
	command.Stdin, command.Stdout, command.Stderr = display, display, display
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = command.Start()
	_ = display.Close()
	if err != nil {
		return "", fmt.Errorf("start: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = screen.Close() })()
	text, _ := io.ReadAll(screen) // EIO: the program has closed the other end
	return string(text), command.Wait()
}

// openTerminal returns both ends of a new pseudo-terminal.
func openTerminal(columns uint16) (screen, display *os.File, err error) {
	screen, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open a terminal: %w", err)
	}
	number, err := unlocked(int(screen.Fd()), columns)
	if err == nil {
		display, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		_ = screen.Close()
		return nil, nil, fmt.Errorf("open a terminal: %w", err)
	}
	return screen, display, nil
}

// unlocked prepares a terminal, and returns its number.
func unlocked(terminal int, columns uint16) (number int, err error) {
	const rows = 24
	if err := unix.IoctlSetPointerInt(terminal, unix.TIOCSPTLCK, 0); err != nil {
		return 0, err
	}
	if err := unix.IoctlSetWinsize(terminal, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}); err != nil {
		return 0, err
	}
	return unix.IoctlGetInt(terminal, unix.TIOCGPTN)
}
