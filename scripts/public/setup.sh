#!/usr/bin/env bash
# Makes .venv-public, with the packages that hold or generate public data.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
pip=(.venv-public/bin/python -m pip install --quiet --disable-pip-version-check)
[ -x .venv-public/bin/python ] || python3 -m venv .venv-public
"${pip[@]}" --requirement scripts/public/requirements.txt
# Only its data: importing it would need PyTorch.
"${pip[@]}" --no-deps obp==0.4.1
