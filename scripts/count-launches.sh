#!/usr/bin/env bash
# Counts the launches and copies of a program without a GPU (Linux on x86-64, with a C++ compiler):
#
#     CUDA_PATH=folder scripts/count-launches.sh path/to/overtone-gpu-check device=cuda parts=launches
#
# NVIDIA's NVRTC, in $CUDA_PATH, compiles the kernels, and a driver that computes nothing counts them.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '4s/^#     /usage: /p' "$0" >&2; exit 2; }
source="$(realpath -- "$(dirname "$0")/../crates/gpu-check/tests/counting/cuda.cpp")"
cuda="${CUDA_PATH:?is the directory of NVRTC and of CUDA\'s headers}"
here="$(mktemp -d)"
trap 'rm -rf "$here"' EXIT
c++ -std=c++17 -O2 -U_FORTIFY_SOURCE -Wall -Wextra -Werror -shared -fPIC -o "$here/libcuda.so" "$source"
export CUDA_COUNTS="$here/counts" LD_LIBRARY_PATH="$here:$cuda/lib64:$cuda/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
"$@"
