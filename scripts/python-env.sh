#!/usr/bin/env bash
# Prints what a build outside the project's folder needs to find the project's Python:
#
#     eval "$(scripts/python-env.sh)"
#
# Inside the folder nothing is needed: .cargo/config.toml names .venv for the build, the
# binary carries the path of Python's shared library (rpath) and looks for .venv itself.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x .venv/bin/python ] || { echo "python-env: .venv is missing: run \`just setup\`" >&2; exit 1; }
printf 'export PYO3_PYTHON=%q\n' "$PWD/.venv/bin/python"
printf 'export VIRTUAL_ENV=%q\n' "$PWD/.venv"
