#!/usr/bin/env bash
# Copies the starter sets and all dataset descriptions into the Python package, so that wheels contain
# them. `just wheel` and the release workflow run this script.
set -euo pipefail
cd "$(dirname "$0")/.."

package=python/overtone/datasets
rm -rf "$package"
mkdir "$package"
cp -R datasets/*.toml datasets/README.md datasets/starter "$package/"
