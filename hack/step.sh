#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs a command and says that it begins, that it still runs, and how long it
# took, so that a cold build does not look hung:
#
#   hack/step.sh "Lint" golangci-lint run ./...
#
# Where it fails, the tests that failed and their messages are said once more, at
# the end: of a long log, often only the end is kept.
set -euo pipefail

what=$1
shift
echo "==> $what"

# The ticker reads from a pipe that this script alone holds open. It speaks each
# time that nothing came for half a minute, and ends when the script does.
exec 9> >(
	for ((seconds = 30; ; seconds += 30)); do
		read -rt 30 && exit
		(($? > 128)) || exit 0
		echo "    $what: still running, for ${seconds}s"
	done
)

# failed prints what `go test` said of each test that failed, without the log.
failed() {
	awk '/^ *--- FAIL|^panic: |^WARNING: DATA RACE|^-test.shuffle/ { shown = 1; print; next }
		/^    / && shown { print; next }
		{ shown = 0 }' "$1" | head -n 60
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
code=0
"$@" 9>&- | tee "$log" 9>&- || code=$?
if ((code == 0)); then
	echo "    $what: done in ${SECONDS}s"
else
	failed "$log"
	echo "    $what: FAILED after ${SECONDS}s" >&2
fi
exit "$code"
