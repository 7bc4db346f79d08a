#!/usr/bin/env bash
# Runs the tests of the Python package with the extension module of `cargo test`:
#   scripts/python_tests.sh TARGET/release
set -euo pipefail
programs=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
module=$programs/lib_overtone.so
[ -f "$module" ] || module=$programs/lib_overtone.dylib
# A directory of links to the package's sources and the built module.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/overtone"
ln -s "$PWD"/python/overtone/* "$folder/overtone/"
rm -f "$folder"/overtone/_overtone.*so
ln -s "$module" "$folder/overtone/_overtone.abi3.so"
# Some tests need these packages. They are skipped if the packages cannot be installed.
.venv/bin/python -c 'import h5py, onnx, onnxruntime, pandas, sklearn' 2>/dev/null ||
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --retries 1 --timeout 10 \
        h5py onnx onnxruntime pandas scikit-learn || true
OVERTONE_TEST_PROGRAM=$programs/overtone PYTHONPATH=$folder:python PYTHONDONTWRITEBYTECODE=1 \
    .venv/bin/python -W ignore::DeprecationWarning -m unittest discover --start-directory python/tests \
    --top-level-directory python "${@:2}"
