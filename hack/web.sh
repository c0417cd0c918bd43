#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the types of the page and bundles it into a folder. With --check it compares what
# it makes with what is committed, where npm's packages can be had.
set -euo pipefail

assets=internal/cli/web/assets
to=$assets
if [[ ${1:-} == --check ]]; then
	to=$(mktemp -d)
	trap 'rm -rf "$to"' EXIT
fi
if ! command -v npm >/dev/null && [[ $to != "$assets" ]]; then
	echo "There is no npm, so the page was not made again; a unit test compares its sources." >&2
	exit 0
fi
if ! (cd web && npm ci --prefer-offline --ignore-scripts --no-audit --no-fund >/dev/null); then
	[[ $to == "$assets" ]] && exit 1
	echo "The packages of the page cannot be had, so what is committed was not compared." >&2
	exit 0
fi
(cd web && node_modules/.bin/tsc)
go -C hack/web run . -from "$PWD/web" -to "$(realpath "$to")"
sources=$(cd web && find . -name node_modules -prune -o -type f -print | LC_ALL=C sort | xargs sha256sum)
echo "$sources" >"$to/SOURCES"
if [[ $to != "$assets" ]] && ! diff --recursive --brief "$assets" "$to"; then
	echo "Run 'make web' and commit the result." >&2
	exit 1
fi
