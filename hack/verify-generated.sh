#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Generates everything into a folder aside and fails if a file of the tree
# differs from it. It looks at the given paths only and changes none of them, so
# other changes in the tree do not matter.
set -euo pipefail

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
"${MAKE:-make}" --no-print-directory generate OUT="$fresh"

stale=0
for path in "$@"; do
	diff --recursive --unified --new-file "$path" "$fresh/$path" || stale=1
done
if ((stale)); then
	echo "Run 'make generate' and commit the result." >&2
	exit 1
fi
