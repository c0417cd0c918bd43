#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the pages of docs/ as a site. A link that leads to no page is an error.
#
#   hack/site/build.sh <folder of the site>
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
SITE=$(cd "$1" && pwd)
export SITE

# The packages stay out of the source tree, where other tools would look into them. The
# pages are copied to them: a page finds the packages only in folders above it.
work=$SITE-build
rm -rf "$work/docs"
mkdir -p "$work"
cp -r "$here/." "$here/../../docs" "$work"
cd "$work"
# Keeps the Go files among the pages and in the packages out of ./... of the project.
echo 'module site' >go.mod
npm ci --no-audit --no-fund --loglevel=error
exec npx vitepress build
