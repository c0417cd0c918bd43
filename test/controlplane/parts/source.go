// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Source returns the folder with the source of a part's module, with the part's CRDs and
// other manifests. It downloads the module if necessary.
func Source(ctx context.Context, name Name) (string, error) {
	p, err := find(name)
	if err != nil {
		return "", err
	}
	return p.source(ctx)
}

func (p part) source(ctx context.Context) (string, error) {
	output, err := p.goOutput(ctx, "mod", "download", "-json", p.module)
	if err != nil {
		return "", fmt.Errorf("fetch the source of %s: %w", p.name, err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(output, &module); err != nil {
		return "", fmt.Errorf("read where the source of %s is: %w", p.name, err)
	}
	return module.Dir, nil
}

// modFile returns the go.mod to build a part with. The copy of a module goes into a
// folder, which the caller removes after the build.
func (p part) modFile(ctx context.Context, folder string) (string, error) {
	original := filepath.Join(p.dir(), "go.mod")
	if len(p.generated) == 0 {
		return original, nil
	}
	source, err := p.source(ctx)
	if err != nil {
		return "", err
	}
	modFile, err := completeModule(folder, original, p.module, source, p.generated)
	if err != nil {
		return "", fmt.Errorf("complete the source of %s: %w", p.name, err)
	}
	return modFile, nil
}

// completeModule copies a module, with empty files in place of those that its repository
// generates, and returns a go.mod that has the copy in place of the module. An overlay
// would do without the copy, but Go allows none in its module cache.
func completeModule(folder, original, module, source string, generated []string) (string, error) {
	if err := os.RemoveAll(folder); err != nil { // of a build that was killed
		return "", err
	}
	copied := filepath.Join(folder, "module")
	if err := os.CopyFS(copied, os.DirFS(source)); err != nil {
		return "", err
	}
	for _, name := range generated {
		path := filepath.Join(copied, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return "", err
		}
	}
	return replaceModule(folder, original, module, copied)
}

// replaceModule writes a go.mod, and its go.sum, that has a folder in place of a module.
func replaceModule(folder, original, module, replacement string) (string, error) {
	content, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	sums, err := os.ReadFile(filepath.Join(filepath.Dir(original), "go.sum"))
	if err != nil {
		return "", err
	}
	modFile := filepath.Join(folder, "go.mod")
	if err := os.WriteFile(filepath.Join(folder, "go.sum"), sums, 0o600); err != nil {
		return "", err
	}
	return modFile, os.WriteFile(modFile, fmt.Appendf(content, "\nreplace %s => %q\n", module, replacement), 0o600)
}
