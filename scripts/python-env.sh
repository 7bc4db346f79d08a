#!/usr/bin/env bash
# Prints the variables that a build outside the project's directory needs to find the project's Python:
#
#     eval "$(scripts/python-env.sh)"
#
# Builds inside the directory do not need them: .cargo/config.toml names .venv for the build. The
# binary contains the path of Python's shared library (rpath) and finds .venv.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x .venv/bin/python ] || { echo "python-env: .venv is missing: run \`just setup\`" >&2; exit 1; }
printf 'export PYO3_PYTHON=%q\n' "$PWD/.venv/bin/python"
printf 'export VIRTUAL_ENV=%q\n' "$PWD/.venv"
