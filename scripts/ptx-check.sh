#!/usr/bin/env bash
# Compile every CUDA kernel for sm_80 and sm_90a without a GPU, and fail when one spills registers,
# has more than 128 at 256 threads, or more than 48 KiB of static shared memory:
#
#     pip install nvidia-cuda-nvrtc nvidia-cuda-nvcc
#     scripts/ptx-check.sh [PYTHON]
#
# PYTHON is the interpreter that has the packages, python3 by default. Each line of the result is a
# kernel, its registers and its shared memory.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

sources="$(mktemp -d)"
trap 'rm -rf -- "$sources"' EXIT
# The test depends on no other crate, so rustc alone compiles it.
CARGO_MANIFEST_DIR="$PWD/crates/kernels" CARGO_TARGET_TMPDIR="$sources" \
    rustc --edition 2024 --test --out-dir "$sources" crates/kernels/tests/cuda_source.rs
OVERTONE_CUDA_SOURCES="$sources" "$sources/cuda_source" --quiet write_sources >/dev/null
"${1:-python3}" - "$sources" <<'PYTHON'
import ctypes
import importlib.util
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ARCHITECTURES = ["80", "90a"]
REGISTERS, SHARED = 128, 49_152

packages = importlib.util.find_spec("nvidia")
if packages is None:
    sys.exit("error: NVRTC is missing. Run `pip install nvidia-cuda-nvrtc nvidia-cuda-nvcc`.")
roots = [Path(root) for root in packages.submodule_search_locations]


def found(pattern):
    paths = [path for root in roots for path in sorted(root.glob(pattern))]
    if not paths:
        sys.exit(f"error: {pattern} is missing. Run `pip install nvidia-cuda-nvrtc nvidia-cuda-nvcc`.")
    return str(paths[-1])


nvrtc = ctypes.CDLL(found("*/lib/libnvrtc.so.*"))
ptxas = found("*/bin/ptxas")


def compiled(text, architecture):
    """The PTX of a text, or an exit with NVRTC's messages."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, None, 0, None, None)
    options = [f"--gpu-architecture=compute_{architecture}".encode()]
    failed = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * 1)(*options))
    name = "ProgramLog" if failed else "PTX"
    getattr(nvrtc, f"nvrtcGet{name}Size")(program, ctypes.byref(size))
    result = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{name}")(program, result)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return not failed, result.value


def check(task):
    """One line of the table, and whether the kernel passes."""
    path, architecture = task
    ok, ptx = compiled(path.read_bytes(), architecture)
    name = f"{path.stem:26} sm_{architecture:4}"
    if not ok:
        return f"{name}\n{ptx.decode()}", False
    file = path.with_suffix(f".{architecture}.ptx")
    file.write_bytes(ptx)
    command = [ptxas, "-v", f"-arch=sm_{architecture}", file, "-o", os.devnull]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        return f"{name}\n{run.stderr}", False

    def number(pattern):
        return sum(map(int, re.findall(pattern, run.stderr)))

    registers, shared = number(r"Used (\d+) registers"), number(r"(\d+) bytes smem")
    spilled = number(r"(\d+) bytes spill")
    line = f"{name} {registers:4} registers {shared:6} B shared {spilled:4} B spilled"
    return line, registers <= REGISTERS and shared <= SHARED and spilled == 0


sources = sorted(Path(sys.argv[1]).glob("*.cu"))
tasks = [(path, architecture) for path in sources for architecture in ARCHITECTURES]
with ThreadPoolExecutor(os.cpu_count()) as pool:
    results = list(pool.map(check, tasks))
for line, passed in results:
    print(line if passed else f"{line}  FAILED")
if not tasks or not all(passed for _, passed in results):
    sys.exit("error: a kernel fails the check")
PYTHON
