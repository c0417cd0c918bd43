#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Looks for known vulnerabilities in what packages call, in a database. That of
# the Go project may be out of reach; then this says so, and nothing was checked. With
# VULNCHECK_REQUIRED=1, as before a release, that is a failure:
#
#   hack/vulncheck.sh govulncheck https://vuln.go.dev ./...
set -euo pipefail

govulncheck=$1 database=$2
shift 2

# It prints when the database was changed last, if it can read it.
about=$("$govulncheck" -db "$database" -version)
if [[ $about != *'DB updated: '* ]]; then
	echo "    SKIPPED: $database cannot be reached, so nobody has looked for known vulnerabilities."
	[[ ${VULNCHECK_REQUIRED:-} != 1 ]]
	exit
fi

# A crash may leave the exit code of success, so the verdict must be there, too.
verdict=$("$govulncheck" -db "$database" "$@") || { code=$?; echo "$verdict"; exit "$code"; }
echo "$verdict"
grep -qE '^(No vulnerabilities found|Your code is affected by 0 vulnerabilities)\.' <<<"$verdict"
