// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// deleteDelay makes it rare that KWOK deletes a pod twice by its name; refuseLateRemovals
// keeps the second deletion from deleting another pod.
const deleteDelay = 300 * time.Millisecond

// readyStageFile is the stage that makes pods Ready.
const readyStageFile = "pod/fast/pod-ready.yaml"

// stageFiles are KWOK's own stages: nodes become and stay Ready, pods become Ready at
// once, pods of Jobs complete, deleted pods disappear.
var stageFiles = []string{
	"node/fast/node-initialize.yaml",
	"node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
	readyStageFile,
	"pod/fast/pod-complete.yaml",
	"pod/fast/pod-delete.yaml",
}

func (c *ControlPlane) installStages(ctx context.Context) error {
	for _, file := range stageFiles {
		stage, err := stageOf(ctx, file)
		if err != nil {
			return err
		}
		if stage.GetName() == "pod-delete" {
			if err := setDelay(stage, deleteDelay); err != nil {
				return err
			}
		}
		if err := c.createStage(ctx, stage); err != nil {
			return err
		}
	}
	return nil
}

// stageOf reads one of KWOK's own stages.
func stageOf(ctx context.Context, file string) (*unstructured.Unstructured, error) {
	source, err := parts.Source(ctx, parts.KWOK)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(filepath.Join(source, "kustomize", "stage", filepath.FromSlash(file)))
	if err != nil {
		return nil, fmt.Errorf("read a stage of KWOK: %w", err)
	}
	return parseStage(content)
}

func parseStage(content []byte) (*unstructured.Unstructured, error) {
	stage := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(content, &stage.Object); err != nil {
		return nil, fmt.Errorf("read a stage: %w", err)
	}
	return stage, nil
}

func setDelay(stage *unstructured.Unstructured, delay time.Duration) error {
	if err := unstructured.SetNestedField(stage.Object, delay.Milliseconds(), "spec", "delay", "durationMilliseconds"); err != nil {
		return fmt.Errorf("delay the stage %s: %w", stage.GetName(), err)
	}
	return nil
}

func (c *ControlPlane) createStage(ctx context.Context, stage *unstructured.Unstructured) error {
	if err := c.client.Create(ctx, stage); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create the stage %s: %w", stage.GetName(), err)
	}
	return nil
}
