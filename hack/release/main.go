// SPDX-License-Identifier: Apache-2.0

// Command release builds the command line for several platforms, and writes the files from
// which users install it: an archive for each platform, manifests for krew, for the plugins
// of Flux and for Homebrew, and the checksums of all files in the folder.
//
// Two runs on one commit with one version of Go write the same bytes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], compile); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is what is made.
type release struct {
	// version is a semantic version, with a v before it.
	version string
	// source is the address of the repository.
	source string
	// created is the time of all files.
	created time.Time
	// license and man are a file and a folder that go into the archives.
	license, man string
	// out is the folder of the release.
	out       string
	platforms []platform
}

// archive is one that was written.
type archive struct {
	platform
	name, sha256 string
}

// run makes a release. build compiles the program for a platform.
func run(ctx context.Context, args []string, build func(context.Context, release, platform) ([]byte, error)) error {
	r, err := parse(args)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return fmt.Errorf("create the folder of the release: %w", err)
	}
	var archives []archive
	for _, p := range r.platforms {
		program, err := build(ctx, r, p)
		if err != nil {
			return fmt.Errorf("build for %s: %w", p, err)
		}
		a, err := r.pack(p, program)
		if err != nil {
			return fmt.Errorf("pack for %s: %w", p, err)
		}
		archives = append(archives, a)
	}
	if err := r.writeManifests(archives); err != nil {
		return err
	}
	return writeChecksums(r.out)
}

func parse(args []string) (release, error) {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	r := release{}
	flags.StringVar(&r.version, "version", "", "The version, such as v0.4.0.")
	flags.StringVar(&r.source, "source", "", "Where the sources are; the archives are downloaded from the releases there.")
	flags.StringVar(&r.license, "license", "LICENSE", "The file with the license.")
	flags.StringVar(&r.man, "man", "", "The folder with the man pages.")
	flags.StringVar(&r.out, "out", "", "The folder to write to.")
	created := flags.String("created", "", "When the sources were made, such as 2026-01-02T15:04:05Z.")
	platforms := flags.String("platforms", "", "The platforms, such as linux/amd64, with spaces between.")
	if err := flags.Parse(args); err != nil {
		return release{}, err
	}
	if r.source == "" || r.man == "" || r.out == "" {
		return release{}, errors.New("say where the sources and the man pages are and where to write to, with -source, -man and -out")
	}
	if !isVersion(r.version) {
		return release{}, fmt.Errorf("%q is not a version of a release: say one such as v0.4.0, with -version", r.version)
	}
	at, err := time.Parse(time.RFC3339, *created)
	if err != nil {
		return release{}, fmt.Errorf("say when the sources were made, with -created: %w", err)
	}
	r.created = at.UTC()
	r.platforms, err = parsePlatforms(*platforms)
	return r, err
}

// isVersion reports whether a tag is a semantic version with a v before it, which krew
// requires.
func isVersion(tag string) bool {
	bare, hasV := strings.CutPrefix(tag, "v")
	_, err := semver.StrictNewVersion(bare)
	return hasV && err == nil
}

// bareVersion returns the version without the v, for Flux, Homebrew and names of files.
func (r release) bareVersion() string { return strings.TrimPrefix(r.version, "v") }

// url returns where a file of the release is downloaded.
func (r release) url(name string) string {
	return r.source + "/releases/download/" + r.version + "/" + name
}

// write writes a file of the release, with the time at which its sources were made.
func (r release) write(name string, content []byte) error {
	path := filepath.Join(r.out, name)
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return err
	}
	return os.Chtimes(path, r.created, r.created)
}
