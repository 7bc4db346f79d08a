#!/usr/bin/env bash
# Makes .venv-peers with the packages of scripts/peers/requirements.txt (5 GB, most of it CUDA,
# which PyTorch brings along). Quick when nothing is to be done.
set -euo pipefail
cd "$(dirname "$0")/../.."

requirements=scripts/peers/requirements.txt
mark=.venv-peers/setup.done
wanted="$(cksum <"$requirements")"
if [ -f "$mark" ] && [ "$(cat "$mark")" = "$wanted" ]; then
    exit 0
fi
echo "setup: installing PyTorch and d3rlpy into .venv-peers (5 GB, minutes)" >&2
.venv-peers/bin/python -c 'import pip' 2>/dev/null || .venv/bin/python -m venv --clear .venv-peers
.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check \
    --requirement "$requirements"
.venv-peers/bin/python -c "import torch, d3rlpy, ale_py, cv2" 2>.venv-peers/setup.log || {
    tail -n 3 .venv-peers/setup.log >&2
    echo "setup: the packages of $requirements do not work together" >&2
    exit 1
}
printf '%s' "$wanted" >"$mark"
