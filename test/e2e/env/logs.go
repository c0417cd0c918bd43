// SPDX-License-Identifier: Apache-2.0

package env

import (
	"os"
	"path/filepath"
	"strings"
)

// logsVariable is the environment variable with the folder for logs.
const logsVariable = "E2E_LOGS"

// newLogDir makes a new folder for the logs of one control plane, named for a test or for
// the tests of a package. Tests read logs: they must not find those of an earlier run. It
// returns no folder if nobody wants the logs.
func newLogDir(of string) (string, error) {
	parent := os.Getenv(logsVariable)
	if parent == "" {
		return "", nil
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	return os.MkdirTemp(parent, strings.ReplaceAll(of, "/", "-")+"-*")
}

// tested returns the name of the package whose tests run: they run in its folder.
func tested() string {
	folder, err := os.Getwd()
	if err != nil {
		return "tests"
	}
	return filepath.Base(folder)
}
