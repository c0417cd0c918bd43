// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"context"
	"os"
	"path/filepath"
)

// downloads fetches the modules of the parts, one folder after the other, while earlier
// parts compile. Thus the network and the processors work at the same time.
type downloads struct {
	done   map[string]chan download
	cancel context.CancelFunc
	ended  chan struct{}
	copies string // the folder for copies of modules
}

// download is what a part is built with.
type download struct {
	modFile string
	err     error
}

func downloadAhead(ctx context.Context, missing []part) *downloads {
	ctx, cancel := context.WithCancel(ctx)
	d := &downloads{
		done: map[string]chan download{}, cancel: cancel, ended: make(chan struct{}),
		copies: filepath.Join(binDir(), ".sources"), // one name is enough: only the owner of the lock builds
	}
	for _, p := range missing {
		d.done[p.folder] = make(chan download, len(missing))
	}
	go d.run(ctx, missing)
	return d
}

func (d *downloads) run(ctx context.Context, missing []part) {
	defer close(d.ended)
	for _, p := range missing {
		modFile, err := d.fetch(ctx, p)
		d.done[p.folder] <- download{modFile, err}
	}
}

// fetch lists the imports of a part. This downloads only the modules that the part needs.
func (d *downloads) fetch(ctx context.Context, p part) (string, error) {
	modFile, err := p.modFile(ctx, filepath.Join(d.copies, string(p.name)))
	if err != nil {
		return "", err
	}
	return modFile, p.goCommand(ctx, "list", "-modfile", modFile, "-deps", "-tags", p.tags, "-f", "{{.ImportPath}}", p.main)
}

// wait waits for the next download of a folder. It returns the go.mod to build with.
func (d *downloads) wait(folder string) (string, error) {
	done := <-d.done[folder]
	return done.modFile, done.err
}

func (d *downloads) stop() {
	d.cancel()
	<-d.ended
	_ = os.RemoveAll(d.copies)
}
