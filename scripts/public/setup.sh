#!/usr/bin/env bash
# Makes .venv-public, with the packages that hold or generate public data; `setup.sh agents`: also with
# those that train d3rlpy's agents (5 GB, most of it CUDA, which PyTorch brings along).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
pip=(.venv-public/bin/python -m pip install --quiet --disable-pip-version-check)
[ -x .venv-public/bin/python ] || python3 -m venv .venv-public
"${pip[@]}" --requirement scripts/public/requirements.txt
# Only its data: importing it would need PyTorch.
"${pip[@]}" --no-deps obp==0.4.1
if [ "${1:-}" = agents ]; then
    "${pip[@]}" --requirement scripts/public/requirements-agents.txt
    # It asks for Gymnasium 1.0.0, and works with the one that is there.
    "${pip[@]}" --no-deps d3rlpy==2.8.1
fi
