// SPDX-License-Identifier: Apache-2.0

// Command image builds the image of the controller and pushes it: the same program, user
// and labels as those of the Dockerfile, without a Docker engine. It prints the address of
// the image with its digest. It uses the login that `docker login` has stored.
//
// Two runs on one commit with one version of Go push the same bytes, wherever they run: who
// doubts an image builds it again.
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
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, compile); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// release is what the image is made of.
type release struct {
	reference name.Tag
	// revision is the commit, and created its time.
	revision string
	created  time.Time
	// architectures are those of Linux, as Go names them.
	architectures []string
}

// builder compiles a program for an architecture.
type builder func(ctx context.Context, p program, version, arch string) ([]byte, error)

// run pushes the image.
func run(ctx context.Context, args []string, out io.Writer, build builder) error {
	r, err := parse(args)
	if err != nil {
		return err
	}
	var platforms []platform
	for _, arch := range r.architectures {
		all := platform{architecture: arch}
		for _, p := range programs {
			content, err := build(ctx, p, r.reference.TagStr(), arch)
			if err != nil {
				return fmt.Errorf("build %s for %s: %w", p.name, arch, err)
			}
			all.programs = append(all.programs, file{p.name, 0o755, content})
		}
		platforms = append(platforms, all)
	}
	index, err := r.index(platforms)
	if err != nil {
		return fmt.Errorf("make the image: %w", err)
	}
	return push(ctx, r.reference, index, out)
}

func push(ctx context.Context, to name.Tag, index v1.ImageIndex, out io.Writer) error {
	if err := remote.WriteIndex(to, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("push %s: %w", to, err)
	}
	digest, err := index.Digest()
	if err != nil {
		return fmt.Errorf("compute the digest: %w", err)
	}
	_, err = fmt.Fprintf(out, "%s@%s\n", to.Context(), digest)
	return err
}

func parse(args []string) (release, error) {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	repository := flags.String("repository", "", "The repository to push to, such as registry.example.com/rollout-controller.")
	tag := flags.String("tag", "", "The tag to push, which is the version of the program.")
	revision := flags.String("revision", "", "The commit that the image is made from.")
	created := flags.String("created", "", "When that was made, such as 2026-01-02T15:04:05Z.")
	architectures := flags.String("architectures", "amd64,arm64", "The architectures, with commas between.")
	if err := flags.Parse(args); err != nil {
		return release{}, err
	}
	if *repository == "" || *tag == "" || *revision == "" {
		return release{}, errors.New("say where to push to and what, with -repository, -tag and -revision")
	}
	at, err := time.Parse(time.RFC3339, *created)
	if err != nil {
		return release{}, fmt.Errorf("say when the sources were made, with -created: %w", err)
	}
	reference, err := name.NewTag(*repository+":"+*tag, name.StrictValidation)
	return release{reference, *revision, at.UTC(), strings.Split(*architectures, ",")}, err
}
