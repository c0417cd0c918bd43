// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fluxrollouts/rollout-controller/test/emulator"
)

// terminal is a pseudo-terminal with the program on it.
type terminal struct {
	t       *testing.T
	process *exec.Cmd
	// keyboard writes what is typed, and changes how Rollouts change.
	keyboard *os.File
	// before is the mode of the terminal before the program started.
	before  unix.Termios
	changes io.WriteCloser
	// patch is the file with what the program has sent.
	patch string
	// ended is closed once everything that was written is on the screen.
	ended chan struct{}

	lock   sync.Mutex
	screen *emulator.Terminal
	raw    strings.Builder
	news   chan struct{}
}

// typed is what stands above the output of the program: the command.
const typed = "$ rollouts"

// longestWait is for machines that are busy: what is awaited follows at once.
const longestWait = time.Minute

// onTerminal runs the program on a terminal so many columns wide, with a cluster of these
// objects. Variables of the environment are "NAME=VALUE".
func onTerminal(t *testing.T, columns int, objects string, environment []string, args ...string) *terminal {
	t.Helper()
	folder := t.TempDir()
	file := filepath.Join(folder, "cluster.yaml")
	mustDo(t, os.WriteFile(file, []byte(objects), 0o600))
	keyboard, display := openTerminal(t)
	reads, writes, err := os.Pipe()
	mustDo(t, err)
	x := &terminal{
		t: t, keyboard: keyboard, changes: writes, patch: filepath.Join(folder, "patch"),
		screen: emulator.New(columns, emulatedRows), news: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	x.resize(columns)
	x.before = x.modes()
	x.show([]byte(typed + "\r\n"))
	x.process = exec.Command(os.Args[0], args...)
	x.process.Env = append([]string{
		clusterVariable + "=" + file, patchVariable + "=" + x.patch, "HOME=" + folder, "TERM=xterm-256color", "LANG=C.UTF-8", "KUBECONFIG=/dev/null",
	}, environment...)
	x.process.Stdin, x.process.Stdout, x.process.Stderr = display, display, display
	x.process.ExtraFiles = []*os.File{reads}
	x.process.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	mustDo(t, x.process.Start())
	t.Cleanup(func() {
		_ = x.process.Process.Kill() // if a test ends early
		<-x.ended
	})
	mustDo(t, display.Close())
	mustDo(t, reads.Close())
	go x.read()
	return x
}

// emulatedRows is how many rows a terminal has.
const emulatedRows = 12

// openTerminal returns both ends of a new pseudo-terminal.
func openTerminal(t *testing.T) (keyboard, display *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	mustDo(t, err)
	t.Cleanup(func() { _ = keyboard.Close() })
	mustDo(t, unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	mustDo(t, err)
	display, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	mustDo(t, err)
	return keyboard, display
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// read shows what the program writes, until it ends.
func (x *terminal) read() {
	defer close(x.ended)
	piece := make([]byte, 4096)
	for {
		n, err := x.keyboard.Read(piece)
		x.show(piece[:n])
		if err != nil {
			return // EIO: the other end was closed
		}
	}
}

func (x *terminal) show(text []byte) {
	x.lock.Lock()
	defer x.lock.Unlock()
	x.raw.Write(text)
	_, _ = x.screen.Write(text) // the error stays in it
	select {
	case x.news <- struct{}{}:
	default:
	}
}

// written is all that the program has written until now.
func (x *terminal) written() string {
	x.lock.Lock()
	defer x.lock.Unlock()
	return x.raw.String()
}

// resize changes the width.
func (x *terminal) resize(columns int) {
	x.t.Helper()
	x.lock.Lock()
	defer x.lock.Unlock()
	x.screen.Resize(columns, emulatedRows)
	mustDo(x.t, unix.IoctlSetWinsize(int(x.keyboard.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: emulatedRows, Col: uint16(columns)}))
}

func (x *terminal) press(keys string) {
	x.t.Helper()
	_, err := x.keyboard.WriteString(keys)
	mustDo(x.t, err)
}

func (x *terminal) change(c rolloutChange) {
	x.t.Helper()
	mustDo(x.t, json.NewEncoder(x.changes).Encode(c))
}

// text is what is on the screen, and what was scrolled away, without the command.
func (x *terminal) text() string {
	x.t.Helper()
	x.lock.Lock()
	defer x.lock.Unlock()
	mustDo(x.t, x.screen.Err)
	text, found := strings.CutPrefix(x.screen.Text(), typed)
	if !found {
		x.t.Fatalf("the command above the output was erased:\n%s", x.screen.Text())
	}
	return strings.TrimPrefix(text, "\n")
}

// awaitText waits until the text is exactly this.
func (x *terminal) awaitText(want string) {
	x.t.Helper()
	x.await(func(text string) bool { return text == want }, want)
}

// awaitPart waits until the text contains this.
func (x *terminal) awaitPart(part string) {
	x.t.Helper()
	x.await(func(text string) bool { return strings.Contains(text, part) }, part)
}

func (x *terminal) await(good func(string) bool, what string) {
	x.t.Helper()
	late := time.After(longestWait)
	for !good(x.text()) {
		select {
		case <-x.news:
		case <-late:
			x.t.Fatalf("awaited on the screen:\n%s\n\nbut it shows:\n%s\n\nwritten was: %q", what, x.text(), x.written())
		}
	}
}

// awaitExit waits until the program has ended, and returns its exit code.
func (x *terminal) awaitExit() int {
	x.t.Helper()
	select {
	case <-x.ended:
	case <-time.After(longestWait):
		x.t.Fatalf("awaited the end of the program, but it goes on and shows:\n%s", x.text())
	}
	_ = x.process.Wait() // the code says how it ended
	return x.process.ProcessState.ExitCode()
}
