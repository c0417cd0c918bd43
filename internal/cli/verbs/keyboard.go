// SPDX-License-Identifier: Apache-2.0

package verbs

import "os"

// endOnQ calls stop once the user presses q. What it returns makes the terminal what it
// was.
func (p *program) endOnQ(stop func()) (restore func()) {
	file, isFile := p.in.(*os.File)
	if !isFile || !p.asks {
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
