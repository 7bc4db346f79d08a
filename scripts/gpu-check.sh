#!/usr/bin/env bash
# Checks a GPU with an existing program, on a machine without cargo:
#
#     scripts/gpu-check.sh path/to/overtone-gpu-check [key=value...]
#
# Build the program with the feature `cuda` (docs/gpu.md).
set -euo pipefail
[ $# -ge 1 ] && [ -x "$1" ] || { echo "usage: scripts/gpu-check.sh path/to/overtone-gpu-check [key=value...]" >&2; exit 2; }
program="$(realpath -- "$1")"
shift
# Directory of NVRTC and CUDA's headers, unless it is set.
if [ -z "${CUDA_PATH:-}" ]; then
    for folder in /usr/local/cuda /opt/cuda; do
        [ -d "$folder/include" ] && { export CUDA_PATH="$folder"; break; }
    done
fi
if [ -n "${CUDA_PATH:-}" ]; then
    export LD_LIBRARY_PATH="$CUDA_PATH/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi
exec "$program" "$@"
