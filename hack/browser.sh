#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what the tests of the page need: a browser, from Debian, and the packages of npm.
set -euo pipefail

if ! command -v ${CHROMIUM:-} chromium chromium-headless-shell google-chrome >/dev/null; then
	apt-get update >/dev/null
	DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends chromium >/dev/null
fi
cd "$(dirname "$0")/../web"
npm ci --prefer-offline --ignore-scripts --no-audit --no-fund >/dev/null
