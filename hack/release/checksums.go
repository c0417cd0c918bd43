// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
)

// checksums is the file that is signed, and that sha256sum --check reads.
const checksums = "checksums.txt"

// writeChecksums writes the checksums of all files in a folder, those of other commands
// included.
func writeChecksums(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("read the folder of the release: %w", err)
	}
	var text bytes.Buffer
	for _, entry := range entries {
		if entry.IsDir() || entry.Name() == checksums {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return fmt.Errorf("compute a checksum: %w", err)
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(content), entry.Name())
	}
	return os.WriteFile(filepath.Join(folder, checksums), text.Bytes(), 0o644)
}
