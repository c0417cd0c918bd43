// SPDX-License-Identifier: Apache-2.0

package program

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/kinds"
	"github.com/fluxrollouts/rollout-controller/internal/cli/snapshot"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
)

// largestFile is how many bytes of a file are read.
const largestFile = 64 << 20

// Facts returns what is known of a namespace: the objects of the files if a Rollout is
// among them, and else those of the cluster with those of the files over them.
//
// below reads what a release reaches, where the facts end: the same files, or the cluster.
func (p *Program) Facts(ctx context.Context, namespace string) (facts *snapshot.Snapshot, below client.Reader, err error) {
	scheme, _, err := NewScheme(imagev1.GroupVersion.Version)
	if err != nil {
		return nil, nil, err
	}
	objects, err := p.DecodeFiles(scheme, namespace)
	if err != nil {
		return nil, nil, err
	}
	if slices.ContainsFunc(objects, isRollout) {
		p.offline = true
		facts, err := snapshot.New(scheme, objects...)
		return facts, facts, errors.Join(err, index(ctx, facts))
	}
	c, err := p.Connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	if facts, err = p.Take(ctx, c, namespace, objects...); err == nil && len(objects) > 0 {
		facts, err = facts.With(objects...)
	}
	return facts, c.Client, err
}

// Take reads what the decisions about the Rollouts of a namespace need, and what the
// objects that are laid over it refer to.
func (p *Program) Take(ctx context.Context, c Cluster, namespace string, laid ...client.Object) (*snapshot.Snapshot, error) {
	options := snapshot.Options{QuarantinesEverywhere: p.quarantineScope == quarantine.ScopeCluster}
	facts, err := options.Take(ctx, c.Client, c.Scheme, namespace, laid...)
	if err != nil {
		return nil, err
	}
	return facts, index(ctx, facts)
}

// index adds the indexes that gather needs.
func index(ctx context.Context, facts *snapshot.Snapshot) error {
	return errors.Join(gather.Index(ctx, facts), gather.IndexApprovals(ctx, facts), gather.IndexEnvironments(ctx, facts), targets.IndexHelmReleases(ctx, facts),
		targets.IndexGitRepositories(ctx, facts), targets.IndexArtifacts(ctx, facts))
}

func isRollout(object client.Object) bool {
	_, is := object.(*v1alpha1.Rollout)
	return is
}

// DecodeFiles reads the files. As with kubectl, an object without a namespace is in that
// of the context.
func (p *Program) DecodeFiles(scheme *runtime.Scheme, namespace string) ([]client.Object, error) {
	var all []client.Object
	for _, file := range p.Files {
		content, err := p.ReadFile(file)
		if err != nil {
			return nil, err
		}
		objects, err := snapshot.Decode(scheme, content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, objects...)
	}
	for _, object := range all {
		if kind, _ := kinds.OfObject(object); object.GetNamespace() == "" && !kind.Global {
			object.SetNamespace(namespace)
		}
	}
	return all, nil
}

// ReadFile reads a file, or standard input. Of a report, it returns the objects.
func (p *Program) ReadFile(name string) ([]byte, error) {
	from := p.In
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		from = file
	}
	content, err := io.ReadAll(io.LimitReader(from, largestFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	case len(content) > largestFile:
		return nil, fmt.Errorf("%s is larger than %d MiB", name, largestFile>>20)
	case isReport(name):
		if content, err = objectsOfReport(content); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return content, nil
}

// ReportSuffix is how the name of a report ends. Verbs that read files know it by that.
const ReportSuffix = ".tar.gz"

// ObjectsFile is the file in a report that other verbs read.
const ObjectsFile = "objects.yaml"

// objectsOfReport returns the objects of a report.
func objectsOfReport(content []byte) ([]byte, error) {
	compressed, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("it is no report: %w", err)
	}
	archive := tar.NewReader(io.LimitReader(compressed, largestFile))
	for {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("it is no report: it has no file %s", ObjectsFile)
		case err != nil:
			return nil, fmt.Errorf("it is no report: %w", err)
		case path.Base(header.Name) == ObjectsFile:
			return io.ReadAll(archive)
		}
	}
}

func isReport(file string) bool { return strings.HasSuffix(file, ReportSuffix) }
