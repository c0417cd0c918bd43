#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Stands in for gh in the rehearsal of a release. The folder ASSETS is the release.
set -euo pipefail

[[ $1 == release ]]
action=$2
shift 3
while (($#)); do
	case $1 in
	--notes-file)
		cp "$2" "$ASSETS/../notes.md"
		shift
		;;
	--repo) shift ;;
	--*) ;;
	*) cp "$1" "$ASSETS" ;;
	esac
	shift
done
[[ $action != edit ]] || touch "$ASSETS/../released"
