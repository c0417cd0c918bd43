// SPDX-License-Identifier: Apache-2.0

package program

import "os"

// EndOnQ calls stop once the user presses q. What it returns makes the terminal what it
// was.
func (p *Program) EndOnQ(stop func()) (restore func()) {
	file, isFile := p.In.(*os.File)
	if !isFile || !p.Asks {
		return func() {}
	}
	restore, ok := singleKeys(file)
	if ok {
		go func() {
			defer stop()
			for key := []byte{0}; key[0] != 'q' && key[0] != 'Q'; {
				if _, err := file.Read(key); err != nil {
					return // the terminal is gone
				}
			}
		}()
	}
	return restore
}
