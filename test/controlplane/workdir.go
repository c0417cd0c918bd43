// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const (
	workDirPrefix = "rollout-controlplane-"
	workDirLock   = "in-use"
)

// workDir is a temporary folder. Its owner locks a file in it. The next caller removes
// the folders that are not locked. Thus a folder survives its owner by one run at most,
// even if the owner was killed.
type workDir struct {
	path string
	lock *os.File
}

// newWorkDir makes a folder. A control plane with a name has it in the name of its folder.
func newWorkDir(name string) (*workDir, error) {
	sweepWorkDirs()
	path, err := os.MkdirTemp("", workDirPrefix+fileName(label(name, "*")))
	if err != nil {
		return nil, fmt.Errorf("make a temporary folder: %w", err)
	}
	lock, err := lockFile(filepath.Join(path, workDirLock))
	if err != nil {
		_ = os.RemoveAll(path)
		return nil, err
	}
	return &workDir{path: path, lock: lock}, nil
}

func (d *workDir) file(elements ...string) string {
	return filepath.Join(append([]string{d.path}, elements...)...)
}

func (d *workDir) remove() error {
	defer func() { _ = d.lock.Close() }()
	return os.RemoveAll(d.path)
}

// sweepWorkDirs removes the folders whose owner has ended. A folder without a lock file
// belongs to a caller that is still creating it.
func sweepWorkDirs() {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), workDirPrefix+"*"))
	for _, path := range left {
		if _, err := os.Stat(filepath.Join(path, workDirLock)); err != nil {
			continue
		}
		if lock, err := lockFile(filepath.Join(path, workDirLock)); err == nil {
			_ = os.RemoveAll(path)
			_ = lock.Close()
		}
	}
}

// lockFile opens a file and locks it. It fails at once if another owner has the lock.
// Closing the file, or the end of the process, unlocks it.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock %s: %w", path, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("take the lock %s: %w", path, err)
	}
	return f, nil
}
