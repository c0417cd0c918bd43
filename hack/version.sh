#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Sets the version of a release wherever one is named, or says what a release must not have:
#
#   hack/version.sh set v0.2.0     what the commit before the tag changes
#   hack/version.sh check v0.2.0   fails, and says why, unless that was done
set -euo pipefail
shopt -s nullglob globstar

action=$1 tag=$2
any='[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?'
refused=0

refuse() {
	echo "$1" >&2
	refused=1
}

# each applies a script of sed to files, or refuses the lines that it would change.
each() {
	local script=$1 file
	shift
	for file; do
		if [[ $action == set ]]; then
			sed -i -E "$script" "$file"
		else
			while IFS= read -r line; do
				refuse "$file:$line"
			done < <(diff --old-line-format="%dn is not of $tag: %L" --new-line-format= --unchanged-line-format= "$file" <(sed -E "$script" "$file"))
		fi
	done
}

[[ $tag =~ ^v$any$ ]] || {
	echo "'$tag' is not a version of a release, such as v0.2.0." >&2
	exit 1
}
each "s/^(version: )$any$/\1${tag#v}/; s/^(appVersion: )v$any$/\1$tag/" charts/*/Chart.yaml
each "s/^(  newTag: )v$any$/\1$tag/" config/manager/kustomization.yaml
each "s#(fluxrollouts/rollout-controller/[^ ]*[?]ref=)v$any#\1$tag#
	s#(ghcr\.io/fluxrollouts/charts/[a-z-]+:)$any#\1${tag#v}#
	s#(ghcr\.io/fluxrollouts/[a-z/-]+:)v$any#\1$tag#
	s#(\.github/actions/lint@)v$any#\1$tag#
	s#^( *rev: )v$any\$#\1$tag#
	s#^(version=)$any( platform=)#\1${tag#v}\3#" README.md docs/**/*.md .github/actions/**/*.yaml
each "s/^## Unreleased\$/## $tag/" CHANGELOG.md
[[ $action == check ]] || exit 0

# A tag without any of the lines above is nobody's version.
grep -qx "appVersion: $tag" charts/*/Chart.yaml || refuse "No chart is of the version $tag."
grep -qx "  newTag: $tag" config/manager/kustomization.yaml || refuse "config/manager/kustomization.yaml is not of the version $tag."
grep -qx "## $tag" CHANGELOG.md || refuse "CHANGELOG.md has no section $tag."
# An image that is named by a tag alone can be replaced without a change here.
! grep -nE '^(FROM|# syntax=)' Dockerfile | grep -vE '@sha256:[0-9a-f]{64}|^[0-9]+:FROM scratch$' >&2 ||
	refuse "The Dockerfile names an image without its digest. Renovate proposes it."
exit "$refused"
