// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/test/manifests"
)

const created = "2026-01-02T15:04:05Z"

var at = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

// file is a file of an archive.
type file struct {
	Name, Content string
	Mode          int64
	At            time.Time
}

func pack(t *testing.T, files ...file) (path string) {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	zipped.Comment, zipped.Extra = "Helm", []byte("+aHR0cHM6Ly95b3V0dS5iZS96OVV6MWljandyTQo=")
	archive := tar.NewWriter(zipped)
	for _, f := range files {
		header := tar.Header{Name: f.Name, Mode: f.Mode, Size: int64(len(f.Content)), ModTime: f.At}
		if err := archive.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(archive, f.Content); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "chart-1.0.0.tgz")
	if err := os.WriteFile(path, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func unpack(t *testing.T, path string) (files []file, comment string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, unzipped.Comment + string(unzipped.Extra)
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file{header.Name, string(text), header.Mode, header.ModTime.UTC()})
	}
}

func sum(t *testing.T, path string) [sha256.Size]byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(content)
}

// archive runs the command.
func archive(t *testing.T, paths ...string) {
	t.Helper()
	if err := run(append([]string{"-created=" + created}, paths...)); err != nil {
		t.Fatal(err)
	}
}

func TestArchivesOfOneCommitAreTheSame(t *testing.T) {
	early, late := time.Unix(1_700_000_000, 0), time.Unix(1_800_000_000, 123)
	of := func(when time.Time) string {
		return pack(t, file{"chart/values.yaml", "a: 1\n", 0o644, when}, file{"chart/templates/run.sh", "true\n", 0o755, when.Add(time.Second)})
	}
	first, second := of(early), of(late)
	if sum(t, first) == sum(t, second) {
		t.Fatal("they are the same already")
	}
	archive(t, first, second)
	if sum(t, first) != sum(t, second) {
		t.Error("they differ")
	}
	files, comment := unpack(t, first)
	want := []file{{"chart/values.yaml", "a: 1\n", 0o644, at}, {"chart/templates/run.sh", "true\n", 0o755, at}}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if want := "Helm+aHR0cHM6Ly95b3V0dS5iZS96OVV6MWljandyTQo="; comment != want {
		t.Errorf("the archive is marked %q, want %q", comment, want)
	}
	if info, err := os.Stat(second); err != nil || !info.ModTime().Equal(at) {
		t.Errorf("the file is of %v, %v", info.ModTime(), err)
	}
}

// This test uses the Helm version that packages releases, and each chart.
func TestChartsThatArePackagedTwiceAreTheSame(t *testing.T) {
	charts, err := filepath.Glob("../../charts/*/Chart.yaml")
	if err != nil || len(charts) < 3 {
		t.Fatal(charts, err)
	}
	for _, chart := range charts {
		var sums [][sha256.Size]byte
		for range 2 {
			folder := t.TempDir()
			if _, err := manifests.Helm(t.Context(), "package", filepath.Dir(chart), "--destination", folder); err != nil {
				t.Fatal(err)
			}
			packaged, err := filepath.Glob(filepath.Join(folder, "*.tgz"))
			if err != nil || len(packaged) != 1 {
				t.Fatal(packaged, err)
			}
			before, _ := unpack(t, packaged[0])
			archive(t, packaged...)
			after, _ := unpack(t, packaged[0])
			for i := range before {
				before[i].At = at // Helm's own time is now
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("%s (-packaged +dated):\n%s", chart, diff)
			}
			if _, err := manifests.Helm(t.Context(), "show", "chart", packaged[0]); err != nil {
				t.Error(err)
			}
			sums = append(sums, sum(t, packaged[0]))
		}
		if sums[0] != sums[1] {
			t.Errorf("%s is packaged as %x and as %x", chart, sums[0], sums[1])
		}
	}
}

func TestArchiveSaysWhatIsWrong(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.tgz")
	if err := os.WriteFile(broken, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"no time":    {broken},
		"no archive": {"-created=" + created},
		"none":       {"-created=" + created, broken},
		"absent":     {"-created=" + created, broken + ".not"},
	} {
		if err := run(args); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
