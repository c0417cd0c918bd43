// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"
)

// file is a file of an archive.
type file struct {
	name    string
	mode    fs.FileMode
	content []byte
}

// pack writes the archive for a platform: the program at its root, which Flux and krew
// look for, the license and the man pages.
func (r release) pack(p platform, program []byte) (archive, error) {
	files, err := r.files(p, program)
	if err != nil {
		return archive{}, err
	}
	format, packed := ".tar.gz", writeTar
	if p.os == "windows" {
		format, packed = ".zip", writeZip
	}
	content, err := packed(files, r.created)
	if err != nil {
		return archive{}, err
	}
	name := fmt.Sprintf("flux-rollout_%s_%s_%s%s", r.bareVersion(), p.os, p.arch, format)
	return archive{p, name, fmt.Sprintf("%x", sha256.Sum256(content))}, r.write(name, content)
}

// files returns what is in the archive for a platform. Windows has no man pages.
func (r release) files(p platform, program []byte) ([]file, error) {
	license, err := os.ReadFile(r.license)
	if err != nil {
		return nil, fmt.Errorf("read the license: %w", err)
	}
	all := []file{{p.program(), 0o755, program}, {"LICENSE", 0o644, license}}
	if p.os == "windows" {
		return all, nil
	}
	pages, err := filepath.Glob(filepath.Join(r.man, "*.1"))
	if err != nil || len(pages) == 0 {
		return nil, errors.Join(fmt.Errorf("%s has no man pages", r.man), err)
	}
	for _, page := range pages {
		content, err := os.ReadFile(page)
		if err != nil {
			return nil, fmt.Errorf("read a man page: %w", err)
		}
		all = append(all, file{path.Join("man", filepath.Base(page)), 0o644, content})
	}
	return all, nil
}

func writeTar(files []file, at time.Time) ([]byte, error) {
	var written bytes.Buffer
	zipped := gzip.NewWriter(&written)
	to := tar.NewWriter(zipped)
	for _, f := range files {
		header := tar.Header{Name: f.name, Mode: int64(f.mode), Size: int64(len(f.content)), ModTime: at, Format: tar.FormatUSTAR}
		if err := to.WriteHeader(&header); err != nil {
			return nil, err
		}
		if _, err := to.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(to.Close(), zipped.Close()); err != nil {
		return nil, err
	}
	return written.Bytes(), nil
}

func writeZip(files []file, at time.Time) ([]byte, error) {
	var written bytes.Buffer
	to := zip.NewWriter(&written)
	for _, f := range files {
		header := zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		header.SetMode(f.mode)
		part, err := to.CreateHeader(&header)
		if err != nil {
			return nil, err
		}
		if _, err := part.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := to.Close(); err != nil {
		return nil, err
	}
	return written.Bytes(), nil
}
