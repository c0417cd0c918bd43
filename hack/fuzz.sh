#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Searches with each fuzz test for a while, one after the other:
#
#   hack/fuzz.sh 30s
#
# What fails is stored below testdata/fuzz, where every `go test` tries it again.
set -euo pipefail

for file in $(grep -rl --include='*_test.go' '^func Fuzz' internal | sort); do
	for name in $(sed -n 's/^func \(Fuzz[A-Za-z0-9]*\)(.*/\1/p' "$file"); do
		echo "==> $name of $(dirname "$file")"
		go test -vet=off -run '^$' -fuzz "^$name\$" -fuzztime "$1" "./$(dirname "$file")" | grep -v '^fuzz: elapsed: 0s'
	done
done
