// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"os"
)

// reportRaces has a program that was built with the race detector report to a
// file of its own, where a report is found though the program be killed. It ends
// without the second of waiting that the detector adds. Others do not read this.
func (c *ControlPlane) reportRaces(name string) string {
	return "GORACE=atexit_sleep_ms=0 log_path=" + c.dir.file("races", fileName(name))
}

// races are the reports of all programs, as errors.
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
