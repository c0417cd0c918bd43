// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"text/template"
)

// homebrew names systems and processors in its own words. Windows is not among them.
var homebrew = map[string]string{"darwin": "macos", "linux": "linux", "arm64": "arm", "amd64": "intel"}

//nolint:dupword // Ruby closes each block
var formula = template.Must(template.New("formula").Parse(`# Generated for each release. Do not edit it.
class FluxRollout < Formula
  desc "{{ .Summary }}"
  homepage "{{ .Source }}"
  version "{{ .Version }}"
  license "Apache-2.0"
{{ range .Archives }}
  on_{{ .System }} do
    on_{{ .Processor }} do
      url "{{ .URL }}"
      sha256 "{{ .SHA256 }}"
    end
  end
{{ end }}
  def install
    bin.install "flux-rollout"
    bin.install_symlink "flux-rollout" => "kubectl-rollouts"
    bin.install_symlink "flux-rollout" => "kubectl_complete-rollouts"
    man1.install Dir["man/*.1"]
    generate_completions_from_executable(bin/"flux-rollout", shell_parameter_format: :cobra)
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/kubectl-rollouts version --client")
  end
end
`))

type formulaArchive struct{ System, Processor, URL, SHA256 string }

// formula returns the formula for Homebrew, which installs the program under each of its
// names.
func (r release) formula(archives []archive) ([]byte, error) {
	var used []formulaArchive
	for _, a := range archives {
		if system, arch := homebrew[a.os], homebrew[a.arch]; system != "" && arch != "" {
			used = append(used, formulaArchive{system, arch, r.url(a.name), a.sha256})
		}
	}
	var text bytes.Buffer
	err := formula.Execute(&text, struct {
		Summary, Source, Version string
		Archives                 []formulaArchive
	}{summary, r.source, r.bareVersion(), used})
	if err != nil {
		return nil, fmt.Errorf("write the formula: %w", err)
	}
	return text.Bytes(), nil
}
