#!/usr/bin/env bash
# Puts the starter sets and all descriptions of datasets into the Python package, so that a wheel
# holds them. `just wheel` and the release workflow run it.
set -euo pipefail
cd "$(dirname "$0")/.."

package=python/overtone/datasets
rm -rf "$package"
mkdir "$package"
cp -R datasets/*.toml datasets/README.md datasets/starter "$package/"
