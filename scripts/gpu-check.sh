#!/usr/bin/env bash
# Checks a GPU with a program that is built already, where there is no cargo:
#
#     scripts/gpu-check.sh path/to/overtone-gpu-check [key=value...]
#
# The program is to be built with the feature `cuda` (docs/gpu.md). It is run in the project's
# folder, whose golden files and PyTorch programs it reads.
set -euo pipefail
[ $# -ge 1 ] && [ -x "$1" ] || { echo "usage: scripts/gpu-check.sh path/to/overtone-gpu-check [key=value...]" >&2; exit 2; }
program="$(realpath -- "$1")"
shift
cd "$(dirname "$0")/.."
# Where NVRTC and CUDA's headers are, unless the caller says.
if [ -z "${CUDA_PATH:-}" ]; then
    for folder in /usr/local/cuda /opt/cuda; do
        [ -d "$folder/include" ] && { export CUDA_PATH="$folder"; break; }
    done
fi
if [ -n "${CUDA_PATH:-}" ]; then
    export LD_LIBRARY_PATH="$CUDA_PATH/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi
exec "$program" "$@"
