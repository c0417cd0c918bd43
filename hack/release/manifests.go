// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

// summary says in each catalog what the program is. krew wants no more than 50 letters.
const summary = "Say why a release is held by Flux, and promote it"

const description = `Says what runs, why a release is not out, and what happens next, for the Rollouts
of the Rollout Controller for Flux. Each answer comes from the function by which
the controller itself decides. It reads and changes what your kubeconfig allows.
`

// writeManifests writes the files from which krew, Flux and Homebrew install the archives.
func (r release) writeManifests(archives []archive) error {
	formula, err := r.formula(archives)
	if err != nil {
		return err
	}
	krew, err := yaml.Marshal(r.krewPlugin(archives))
	if err != nil {
		return fmt.Errorf("write the manifest for krew: %w", err)
	}
	flux, err := yaml.Marshal(r.fluxPlugin(archives))
	if err != nil {
		return fmt.Errorf("write the manifest for Flux: %w", err)
	}
	// Flux asks its catalog for a file that has the name of the plugin.
	for name, content := range map[string][]byte{"flux-rollouts.yaml": krew, "rollout.yaml": flux, "flux-rollout.rb": formula} {
		if err := r.write(name, content); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// krewPlugin is a plugin in the index of krew.
type krewPlugin struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Metadata   krewMetadata `json:"metadata"`
	Spec       krewSpec     `json:"spec"`
}

type krewMetadata struct {
	Name string `json:"name"`
}

type krewSpec struct {
	Version          string         `json:"version"`
	Homepage         string         `json:"homepage"`
	ShortDescription string         `json:"shortDescription"`
	Description      string         `json:"description"`
	Platforms        []krewPlatform `json:"platforms"`
}

type krewPlatform struct {
	Selector krewSelector `json:"selector"`
	URI      string       `json:"uri"`
	SHA256   string       `json:"sha256"`
	Bin      string       `json:"bin"`
	Files    []krewFile   `json:"files"`
}

type krewSelector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

type krewFile struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// krewPlugin describes the release for krew. Its index wants no general names, so there it
// is not rollouts.
func (r release) krewPlugin(archives []archive) krewPlugin {
	plugin := krewPlugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: krewMetadata{Name: "flux-rollouts"},
		Spec: krewSpec{Version: r.version, Homepage: r.source, ShortDescription: summary, Description: description},
	}
	for _, a := range archives {
		plugin.Spec.Platforms = append(plugin.Spec.Platforms, krewPlatform{
			Selector: krewSelector{map[string]string{"os": a.os, "arch": a.arch}},
			URI:      r.url(a.name), SHA256: a.sha256, Bin: a.program(),
			Files: []krewFile{{a.program(), "."}, {"LICENSE", "."}},
		})
	}
	return plugin
}

// fluxPlugin is a plugin in a catalog of Flux (fluxcd/flux2, RFC-0013).
type fluxPlugin struct {
	APIVersion  string        `json:"apiVersion"`
	Kind        string        `json:"kind"`
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Homepage    string        `json:"homepage"`
	Source      string        `json:"source"`
	Bin         string        `json:"bin"`
	Versions    []fluxVersion `json:"versions"`
}

type fluxVersion struct {
	Version   string         `json:"version"`
	Platforms []fluxPlatform `json:"platforms"`
}

type fluxPlatform struct {
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	URL      string `json:"url"`
	Checksum string `json:"checksum"`
}

// fluxPlugin describes the release for Flux, which adds .exe to bin by itself.
func (r release) fluxPlugin(archives []archive) fluxPlugin {
	version := fluxVersion{Version: r.bareVersion()}
	for _, a := range archives {
		version.Platforms = append(version.Platforms, fluxPlatform{a.os, a.arch, r.url(a.name), "sha256:" + a.sha256})
	}
	return fluxPlugin{
		APIVersion: "cli.fluxcd.io/v1beta1", Kind: "Plugin", Name: "rollout", Description: summary,
		Homepage: r.source, Source: r.source, Bin: program, Versions: []fluxVersion{version},
	}
}
