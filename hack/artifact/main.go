// SPDX-License-Identifier: Apache-2.0

// Command artifact pushes the manifests of a folder as an OCI artifact that Flux installs
// from, and prints its address with its digest. It uses the login that `docker login` has
// stored.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/fluxrollouts/rollout-controller/test/artifact"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "artifact:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("artifact", flag.ContinueOnError)
	var (
		folder     = flags.String("path", "config", "The folder that has the manifests.")
		skipped    = flags.String("skip", "samples", "Folders in it to leave out, with commas between.")
		repository = flags.String("repository", "", "The repository to push to, such as registry.example.com/manifests.")
		tag        = flags.String("tag", "", "The tag to push.")
		source     = flags.String("source", "", "Where the manifests come from.")
		revision   = flags.String("revision", "", "Their revision, such as v1.2.0@sha1:<commit>.")
		created    = flags.String("created", "", "When that was made, such as 2026-01-02T15:04:05Z.")
	)
	if err := flags.Parse(args); err != nil {
		return err
	}
	reference, err := parse(*repository, *tag)
	if err != nil {
		return err
	}
	files, err := artifact.Manifests(os.DirFS(*folder), strings.Split(*skipped, ",")...)
	if err != nil {
		return fmt.Errorf("%s: %w", *folder, err)
	}
	if len(files) == 0 {
		return fmt.Errorf("%s has no manifests", *folder)
	}
	digest, err := artifact.Push(ctx, reference, artifact.Artifact{
		Files: files,
		Annotations: map[string]string{
			artifact.SourceAnnotation: *source, artifact.RevisionAnnotation: *revision, artifact.CreatedAnnotation: *created,
		},
	}, remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s@%s\n", reference, digest)
	return err
}

func parse(repository, tag string) (name.Tag, error) {
	if repository == "" || tag == "" {
		return name.Tag{}, errors.New("say where to push to, with -repository and -tag")
	}
	return name.NewTag(repository+":"+tag, name.StrictValidation)
}
