#!/usr/bin/env bash
# Builds the wheel as the release does, in an empty folder with an empty cargo home, and tries it where
# there is no Rust: scripts/release.sh [FOLDER]
#
# It prints the newest version of glibc that the wheel needs: at most 2.28, as the wheel's name says.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=${1:-$(mktemp --directory)}
mkdir -p "$folder"
cd "$folder"
folder=$PWD
if [ -n "$(ls -A)" ]; then
    echo "error: $folder is not empty. Name an empty folder" >&2
    exit 2
fi
git clone --quiet --depth 1 "file://$root" source
cd source
scripts/stage-datasets.sh
python3 -m venv "$folder/tools"
"$folder/tools/bin/pip" install --quiet --disable-pip-version-check 'maturin>=1.9.4,<2' ziglang
export CARGO_HOME="$folder/cargo" CARGO_TARGET_DIR="$folder/target" PATH="$folder/tools/bin:$PATH"
# Zig's linker has the C library of older systems. Maturin refuses a wheel that needs a newer one.
maturin build --release --strip --locked --zig --compatibility manylinux_2_28 --out "$folder/dist"

wheel=$(ls "$folder"/dist/*.whl)
python3 -m venv "$folder/fresh"
fresh=("$folder/fresh/bin/python" -m)
"${fresh[@]}" pip install --quiet --disable-pip-version-check "$wheel" 'gymnasium[classic-control]'
cd "$folder"
needs=$(find fresh -name '_overtone*.so' -exec objdump -T {} + | grep -oE 'GLIBC_[0-9.]+' | sort -Vu | tail -1)
# README's Python code, without Rust on the path.
sed -n '/^```python/,/^```/p' source/README.md | grep -v '^```' > readme.py
env -i HOME="$folder" PATH=/usr/bin:/bin "$folder/fresh/bin/python" readme.py
env -i HOME="$folder" PATH="$folder/fresh/bin:/usr/bin:/bin" overtone --version
echo "wheel: $wheel ($(du -h "$wheel" | cut -f1)), which needs $needs"
