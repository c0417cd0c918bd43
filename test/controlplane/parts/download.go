// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"context"
	"encoding/json"
	"fmt"
)

// downloads fetches the modules of the parts, one folder after the other, while earlier
// parts compile. Thus the network and the processors work at the same time.
type downloads struct {
	done   map[string]chan error
	cancel context.CancelFunc
	ended  chan struct{}
}

func downloadAhead(ctx context.Context, missing []part) *downloads {
	ctx, cancel := context.WithCancel(ctx)
	d := &downloads{done: map[string]chan error{}, cancel: cancel, ended: make(chan struct{})}
	for _, p := range missing {
		d.done[p.folder] = make(chan error, len(missing))
	}
	go d.run(ctx, missing)
	return d
}

// run lists the imports of each part. This downloads only the modules that the part
// needs.
func (d *downloads) run(ctx context.Context, missing []part) {
	defer close(d.ended)
	for _, p := range missing {
		d.done[p.folder] <- p.goCommand(ctx, "list", "-deps", "-tags", p.tags, "-f", "{{.ImportPath}}", p.main)
	}
}

// wait waits for the next download of a folder.
func (d *downloads) wait(folder string) error { return <-d.done[folder] }

func (d *downloads) stop() {
	d.cancel()
	<-d.ended
}

// Source returns the folder with the source of a part's module, with the part's CRDs and
// other manifests. It downloads the module if necessary.
func Source(ctx context.Context, name Name) (string, error) {
	p, err := find(name)
	if err != nil {
		return "", err
	}
	output, err := p.goOutput(ctx, "mod", "download", "-json", p.module)
	if err != nil {
		return "", fmt.Errorf("fetch the source of %s: %w", name, err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(output, &module); err != nil {
		return "", fmt.Errorf("read where the source of %s is: %w", name, err)
	}
	return module.Dir, nil
}
