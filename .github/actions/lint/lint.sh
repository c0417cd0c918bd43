#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Downloads the command line of the release VERSION to FOLDER, checks that the workflow of
# that release has signed it, and lints PATHS with it. ARGS are more arguments. SYSTEM and PROCESSOR are those of the machine, as GitHub
# names them. It also runs with the bash of macOS, which is old.
set -euo pipefail

fail() {
	echo "::error::$1"
	exit 1
}

[[ $VERSION =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] ||
	fail "The action is not used by the tag of a release. Name a release such as v0.4.0 with the input version."

case $SYSTEM in
Linux) os=linux ;;
macOS) os=darwin ;;
Windows) os=windows ;;
*) fail "There is no release for this operating system. Use Linux, macOS or Windows." ;;
esac
case $PROCESSOR in
X64) arch=amd64 ;;
ARM64) arch=arm64 ;;
*) fail "There is no release for this processor. Use amd64 or arm64." ;;
esac

format=tar.gz
[[ $os == windows ]] && format=zip
archive=flux-rollout_${VERSION#v}_${os}_$arch.$format
release=https://github.com/fluxrollouts/rollout-controller/releases/download/$VERSION

cd "$FOLDER"
curl --fail --silent --show-error --location --retry 3 --remote-name-all "$release/$archive" "$release/checksums.txt" "$release/checksums.txt.sigstore.json"
cosign verify-blob --new-bundle-format --bundle checksums.txt.sigstore.json \
	--certificate-oidc-issuer=https://token.actions.githubusercontent.com \
	--certificate-identity="https://github.com/fluxrollouts/rollout-controller/.github/workflows/release.yaml@refs/tags/$VERSION" \
	checksums.txt >&2 || fail "The checksums of the release are not signed by its workflow."
sums=(sha256sum)
command -v sha256sum >/dev/null || sums=(shasum -a 256)
sum=$(grep " $archive\$" checksums.txt) || fail "The release has no checksum of $archive."
"${sums[@]}" --check <<<"$sum" >&2
if [[ $format == zip ]]; then
	unzip -oq "$archive" flux-rollout.exe
else
	tar -xzf "$archive" flux-rollout
fi
cd "$OLDPWD"

lines=()
while IFS= read -r line; do
	[[ -z $line ]] || lines+=("$line")
done <<<"$PATHS"$'\n'"$ARGS"
exec "$FOLDER/flux-rollout" lint -o github "${lines[@]}"
