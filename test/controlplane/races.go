// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"os"
)

// reportRaces returns the variable GORACE for the environment of a program. A program
// that was built with the race detector then writes each report to its own file, which
// remains if the program is killed. The program exits without the detector's default wait
// of one second. Other programs do not read the variable.
func (c *ControlPlane) reportRaces(name string) string {
	return "GORACE=atexit_sleep_ms=0 log_path=" + c.dir.file("races", fileName(label(c.options.Name, name)))
}

// races returns the reports of all programs as errors.
func (c *ControlPlane) races() error {
	reports, err := os.ReadDir(c.dir.file("races"))
	if err != nil {
		return fmt.Errorf("look for data races: %w", err)
	}
	var errs []error
	for _, report := range reports {
		text, err := os.ReadFile(c.dir.file("races", report.Name()))
		if err != nil {
			errs = append(errs, fmt.Errorf("read of a data race: %w", err))
			continue
		}
		errs = append(errs, fmt.Errorf("a data race in %s:\n%s", report.Name(), text))
	}
	return errors.Join(errs...)
}
