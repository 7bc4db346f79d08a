#!/usr/bin/env bash
# Runs a program on an emulated CUDA device, without a GPU (Linux on x86-64, with a C++ compiler):
#
#     scripts/emulated-cuda.sh run path/to/overtone-gpu-check device=cuda size=tiny parts=golden
#     scripts/emulated-cuda.sh count path/to/overtone-gpu-check device=cuda parts=launches
#
# `run` compiles kernels for the CPU and runs them. `count` compiles them with NVIDIA's NVRTC, in
# $CUDA_PATH, and drops their launches. The directory $EMULATED keeps what is compiled.
set -euo pipefail
[ $# -ge 2 ] && [[ "$1" = run || "$1" = count ]] || { sed -n '4,5s/^#     /usage: /p' "$0" >&2; exit 2; }
mode="$1"
shift
sources="$(realpath -- "$(dirname "$0")/../crates/testkit/emulated")"
here="${EMULATED:-/tmp/emulated-cuda-$(id -u)}"
mkdir -p "$here/driver" "$here/compiler" "$here/kernels"
build() {  # library, sources
    local library="$1"
    shift
    c++ -std=c++17 -O2 -U_FORTIFY_SOURCE -Wall -Wextra -Werror -shared -fPIC -o "$library.$$" "$@" -ldl
    mv "$library.$$" "$library"
}
build "$here/driver/libcuda.so" "$sources/cuda.cpp" "$sources/threads.cpp"
if [ "$mode" = run ]; then
    build "$here/compiler/libnvrtc.so.13" "$sources/nvrtc.cpp"
    export CUDA_PATH="$sources" CUDA_KERNELS="$here/kernels"
    libraries="$here/compiler"
else
    cuda="${CUDA_PATH:?is the directory of NVRTC and of CUDA\'s headers}"
    libraries="$cuda/lib64:$cuda/lib"
fi
export CUDA_COUNTS="${CUDA_COUNTS:-$here/counts}"
export LD_LIBRARY_PATH="$here/driver:$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$@"
