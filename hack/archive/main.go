// SPDX-License-Identifier: Apache-2.0

// Command archive makes archives of charts the same whenever they are packaged. Helm
// records the time at which it packages. This command replaces it with a given time, in
// the archive and as the time of the file. `helm push` records the latter as the time
// when a chart was made.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "archive:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("archive", flag.ContinueOnError)
	created := flags.String("created", "", "When the sources were made, such as 2026-01-02T15:04:05Z.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339, *created)
	if err != nil {
		return fmt.Errorf("say when the sources were made, with -created: %w", err)
	}
	if flags.NArg() == 0 {
		return errors.New("say which archives")
	}
	for _, path := range flags.Args() {
		if err := date(path, at.UTC()); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// date sets one time on an archive and all files in it.
func date(path string, at time.Time) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	dated, err := rewrite(content, at)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, dated, 0o644); err != nil {
		return err
	}
	return os.Chtimes(path, at, at)
}

// rewrite keeps the names, the order and the content of the files.
func rewrite(archive []byte, at time.Time) ([]byte, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	var written bytes.Buffer
	zipped := gzip.NewWriter(&written)
	zipped.Extra, zipped.Comment = unzipped.Extra, unzipped.Comment // Helm recognizes its archives by these
	to := tar.NewWriter(zipped)
	for from := tar.NewReader(unzipped); ; {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		kept := tar.Header{Typeflag: header.Typeflag, Name: header.Name, Mode: header.Mode, Size: header.Size, ModTime: at}
		if err := to.WriteHeader(&kept); err != nil {
			return nil, err
		}
		if _, err := io.Copy(to, from); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(to.Close(), zipped.Close()); err != nil {
		return nil, err
	}
	return written.Bytes(), nil
}
