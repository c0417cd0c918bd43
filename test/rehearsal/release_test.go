// SPDX-License-Identifier: Apache-2.0

// Package rehearsal releases HEAD with the scripts of .github/workflows/release.yaml, to a
// registry in this process, and verifies what they have published as a stranger would.
// `make release-rehearsal` runs it.
package rehearsal

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// user and password are the login without which the registry takes nothing.
const user, password = "releaser", "secret"

// rehearsal is a release of HEAD.
type rehearsal struct {
	runner
	tag      string
	registry *controlplane.Registry
	// assets is the folder of what the release on GitHub has.
	assets string
	// key is the public key of the signatures.
	key string
}

func TestReleaseIsWhatAStrangerCanInstall(t *testing.T) {
	tag := os.Getenv("RELEASE_TAG")
	if tag == "" {
		t.Skip("make release-rehearsal runs it")
	}
	r := prepare(t, tag)
	r.check(t)
	published := r.publish(t)
	say("published:")
	for _, line := range published {
		say("  %s", strings.TrimPrefix(line, r.registry.Host()+"/"))
	}
	r.release(t)

	r.registry.RequireLogin("", "") // what is published is public
	s := newStranger(t, r)
	s.looksAtTheFiles(t)
	s.verifiesSignatures(t)
	s.pullsTheImage(t)
	s.installs(t)

	if diff := cmp.Diff(published, r.publish(t)); diff != "" {
		t.Fatalf("published again from another folder, something differs (-first +second):\n%s", diff)
	}
	say("published again from another folder, with the same digests")
}

// say prints what was made or verified.
func say(format string, args ...any) { _, _ = fmt.Fprintf(io.Writer(os.Stdout), format+"\n", args...) }

// prepare makes the commit before the tag, in a copy of the repository.
func prepare(t *testing.T, tag string) *rehearsal {
	t.Helper()
	registry, err := controlplane.OpenRegistry()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = registry.GoAway() })
	registry.RequireLogin(user, password)
	folder := t.TempDir()
	r := &rehearsal{tag: tag, registry: registry, assets: filepath.Join(folder, "assets"), key: filepath.Join(folder, "cosign.pub")}
	r.origin, r.login = filepath.Join(folder, "origin"), filepath.Join(folder, "login")
	for _, made := range []string{r.assets, r.origin, r.login} {
		if err := os.Mkdir(made, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	git(t, r.origin, "clone", "--quiet", parts.Root(), ".")
	git(t, r.origin, "switch", "--quiet", "--force-create", "main")
	command(t, r.origin, nil, "make", "release-prepare", "TAG="+tag)
	date := "GIT_COMMITTER_DATE=" + git(t, r.origin, "log", "-1", "--format=%cI")
	command(t, r.origin, []string{date}, "git", "-c", "user.name=rehearsal", "-c", "user.email=rehearsal@localhost",
		"commit", "--quiet", "--all", "--allow-empty", "--date="+strings.TrimPrefix(date, "GIT_COMMITTER_DATE="), "--message=release: "+tag)
	git(t, r.origin, "tag", tag)
	say("rehearsing %s, with the release commit on %s", tag, git(t, parts.Root(), "log", "-1", "--format=%h %s"))
	r.setUp(t, folder)
	return r
}

// setUp puts what GitHub has, and what stands in for it, into the environment of scripts.
func (r *rehearsal) setUp(t *testing.T, folder string) {
	t.Helper()
	programs := filepath.Join(folder, "programs")
	if err := os.Mkdir(programs, 0o750); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gh", "cosign"} {
		link(t, name+".sh", filepath.Join(programs, name))
	}
	command(t, folder, []string{"COSIGN_PASSWORD="}, os.Getenv("COSIGN"), "generate-key-pair")
	r.workflow = readWorkflow(t)
	r.known = map[string]string{"github.actor": user, "secrets.GITHUB_TOKEN": password}
	r.environment = append(withoutMake(os.Environ()),
		"PATH="+programs+":"+os.Getenv("PATH"), "ASSETS="+r.assets, "KEY="+filepath.Join(folder, "cosign.key"), "COSIGN_PASSWORD=",
		"DOCKER_CONFIG="+r.login, "HELM_FLAGS=--plain-http", "GOFLAGS=-trimpath", // whose results all folders share
		"GITHUB_REF_NAME="+r.tag, "GITHUB_SHA="+git(t, r.origin, "rev-parse", "HEAD"), "GITHUB_REPOSITORY=fluxrollouts/rollout-controller")
	for name, value := range r.Env {
		value = strings.Replace(value, "ghcr.io", r.registry.Host(), 1)
		r.known["env."+name] = value
		r.environment = append(r.environment, name+"="+value)
	}
}

// link lets a script of this folder stand in for a program.
func link(t *testing.T, script, program string) {
	t.Helper()
	absolute, err := filepath.Abs(script)
	if err == nil {
		err = os.Symlink(absolute, program)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// withoutMake leaves out what make passes to the programs that it runs.
func withoutMake(environment []string) []string {
	return slices.DeleteFunc(environment, func(variable string) bool {
		return strings.HasPrefix(variable, "MAKE") || strings.HasPrefix(variable, "MFLAGS=")
	})
}

// unpinned is what make says if nothing but the digest of the image that builds is missing.
var unpinned = regexp.MustCompile(`(?m)^(step \d+ of|make: |\d+:FROM |The Dockerfile names an image without its digest).*$`)

// check runs the checks of the job test that are not tests. The digest of the image that
// builds comes from a registry, which the rehearsal does not ask.
func (r *rehearsal) check(t *testing.T) {
	t.Helper()
	err := r.run(t, "test", func(script string) bool { return !strings.HasPrefix(script, "make test ") })
	if err == nil {
		say("make release-check: nothing is in the way of the tag")
		return
	}
	if others := strings.TrimSpace(unpinned.ReplaceAllString(err.Error(), "")); others != "" {
		t.Fatalf("the tag would be refused: %v", err)
	}
	say("before the tag: the Dockerfile needs the digests of its images (make release-check)")
}

// publish runs the jobs that publish and make files, and returns what they say of it.
func (r *rehearsal) publish(t *testing.T) []string {
	t.Helper()
	for _, job := range []string{"publish", "draft"} {
		if err := r.run(t, job, always); err != nil {
			t.Fatal(err)
		}
	}
	published := []string{r.known["env.IMAGE"] + "@" + r.known["needs.publish.outputs.image"]}
	for _, name := range []string{"needs.publish.outputs.others", "needs.draft.outputs.checksums"} {
		published = append(published, strings.Split(r.known[name], "\n")...)
	}
	return published
}

func always(string) bool { return true }

// release signs what was published, and makes the release public.
func (r *rehearsal) release(t *testing.T) {
	t.Helper()
	for _, job := range []string{"sign", "release"} {
		if err := r.run(t, job, always); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(r.assets, "..", "released")); err != nil {
		t.Fatalf("the release stays a draft: %v", err)
	}
	say("all jobs of the workflow have run: %s", strings.Join(jobs, ", "))
}
