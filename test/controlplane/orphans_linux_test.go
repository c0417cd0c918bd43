// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

const victimVariable = "CONTROLPLANE_TEST_VICTIM"

// TestVictim is not a test: it is the process that the next test kills.
func TestVictim(t *testing.T) {
	if os.Getenv(victimVariable) == "" {
		t.Skip("runs only as a child of another test")
	}
	c, err := controlplane.Start(t.Context(), controlplane.Options{Workloads: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.StartProcess("sleeper", "/bin/sleep", []string{"300"}, nil); err != nil {
		t.Fatal(err)
	}
	fmt.Println("folder", c.Dir())
	for _, name := range []parts.Name{parts.Etcd, parts.APIServer, parts.ControllerManager, parts.Scheduler, parts.KWOK, "sleeper"} {
		fmt.Println("process", c.Part(name).PID())
	}
	fmt.Println("complete")
	time.Sleep(5 * time.Minute)
}

func TestNothingIsLeftOfAKilledProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	folder, processes := killVictim(t)
	if len(processes) != 6 {
		t.Fatalf("the victim had %d processes; want 6", len(processes))
	}
	deadline := time.Now().Add(10 * time.Second)
	for _, pid := range processes {
		for alive(pid) {
			if time.Now().After(deadline) {
				t.Fatalf("process %s outlives its parent", pid)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	next := start(t, controlplane.Options{})
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the folder %s of the victim outlives the next start: %v", folder, err)
	}
	own := next.Dir()
	if err := next.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(own); !os.IsNotExist(err) {
		t.Errorf("the folder %s outlives Stop: %v", own, err)
	}
}

// killVictim kills the victim after it has started everything.
func killVictim(t *testing.T) (folder string, processes []string) {
	t.Helper()
	victim := exec.Command(os.Args[0], "-test.run=^TestVictim$", "-test.v")
	victim.Env = append(os.Environ(), victimVariable+"=1")
	victim.Stderr = os.Stderr
	output, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = victim.Wait() }()
	defer func() { _ = victim.Process.Kill() }() // SIGKILL
	for lines := bufio.NewScanner(output); lines.Scan(); {
		kind, value, _ := strings.Cut(lines.Text(), " ")
		switch kind {
		case "folder":
			folder = value
		case "process":
			processes = append(processes, value)
		case "complete":
			return folder, processes
		}
	}
	t.Fatal("the victim ended by itself")
	return "", nil
}

// alive reports whether a process exists and is not a zombie.
func alive(pid string) bool {
	status, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(status), ") ")
	return !strings.HasPrefix(state, "Z")
}
