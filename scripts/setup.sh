#!/usr/bin/env bash
# Sets up the requirements of Overtone apart from Rust: a C compiler, a Python 3.10+ with a shared
# library, and .venv with the packages of scripts/requirements.txt.
#
# Returns quickly if everything is installed. As root on Debian or Ubuntu it installs missing system
# packages. On other systems it prints the command to install them. PYTHON=/path/to/python3 selects
# the interpreter. Otherwise a working .venv is kept.
set -euo pipefail
cd "$(dirname "$0")/.."

requirements=scripts/requirements.txt
log=.venv/setup.log

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# Installs Debian packages as root. Otherwise prints the command and exits.
#   packages WHY PACKAGE...
packages() {
    local why=$1
    shift
    if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
        say "$why: installing $* (apt-get, a minute)"
        { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@"; } \
            >/dev/null 2>&1 || die "$why, and \`apt-get install -y $*\` failed: run it to see why."
    elif command -v apt-get >/dev/null; then
        die "$why: run \`sudo apt-get install -y $*\`, then repeat your command."
    elif command -v dnf >/dev/null; then
        die "$why: run \`sudo dnf install gcc python3 python3-devel\`, then repeat your command."
    elif command -v brew >/dev/null; then
        die "$why: run \`xcode-select --install; brew install python\`, then repeat your command."
    else
        die "$why: install a C compiler and Python 3.10 or newer with its shared library and headers."
    fi
}

# Checks that an interpreter is new enough, has a shared library to link, and can create a .venv.
#   suits PYTHON
suits() {
    [ "$("$1" - 2>/dev/null <<'PYTHON'
import os, sys, sysconfig
import ensurepip, venv
get = sysconfig.get_config_var
library = os.path.join(get("LIBDIR") or "", get("LDLIBRARY") or "-")
shared = get("PYTHONFRAMEWORK") or (get("Py_ENABLE_SHARED") and os.path.exists(library))
print("suits" if sys.version_info >= (3, 10) and shared else "no")
PYTHON
    )" = suits ]
}

# Prints the first interpreter that suits.
find_python() {
    local name path names=(python3 python3.14 python3.13 python3.12 python3.11 python3.10)
    [ -z "${PYTHON:-}" ] || names=("$PYTHON")
    for name in "${names[@]}"; do
        while read -r path; do
            if suits "$path"; then
                echo "$path"
                return
            fi
        done < <(type -ap "$name" || true)
    done
}

command -v cc >/dev/null || command -v gcc >/dev/null || command -v clang >/dev/null ||
    packages "A C compiler is missing" build-essential

# The mark of a finished set-up, which is written last. It contains the checksum of the requirements.
mark=".venv/setup.done"
wanted=$(cksum <"$requirements" | cut -d ' ' -f 1,2)

# Prints the version and the installation directory of an interpreter.
#   of_python PYTHON
of_python() { "$1" -c 'import sys; print(sys.version_info[:2], sys.base_prefix)' 2>/dev/null; }

# Checks that .venv is complete. An unfinished one, or one of `uv venv`, has no pip.
is_venv() { .venv/bin/python -c 'import pip' 2>/dev/null; }

# Checks whether the set-up is finished. Older marks have a third word.
is_done() {
    [ -f "$mark" ] && [ "$(cut -d ' ' -f 1,2 "$mark")" = "$wanted" ] && is_venv &&
        { [ -z "${PYTHON:-}" ] || [ "$(of_python "$PYTHON")" = "$(of_python .venv/bin/python)" ]; }
}

if is_done; then
    exit 0
fi

# With a lock, two parallel commands set up only once. NFS locks only writable files, and some file
# systems do not support locks, so errors of the lock are ignored.
if command -v flock >/dev/null && { exec 9<>"$requirements"; } 2>/dev/null; then
    flock 9 2>/dev/null || true
    if is_done; then
        exit 0
    fi
fi

if [ -z "${PYTHON:-}" ] && is_venv && suits .venv/bin/python; then
    python=.venv/bin/python
else
    python=$(find_python)
fi
if [ -z "$python" ]; then
    if [ -n "${PYTHON:-}" ]; then
        die "PYTHON=$PYTHON is not a Python 3.10 or newer with a shared library and the venv module."
    elif type -ap python3 >/dev/null; then
        packages "No Python 3.10 or newer with a shared library and the venv module was found" \
            python3 python3-dev python3-venv
    else
        packages "Python is missing" python3 python3-dev python3-venv
    fi
    hash -r
    python=$(find_python)
    [ -n "$python" ] || die "The system's Python is older than 3.10 or has no shared library: install Python 3.10 or newer (with --enable-shared) and set PYTHON to it."
fi

if ! is_venv || [ "$(of_python "$python")" != "$(of_python .venv/bin/python)" ]; then
    say "making .venv with $("$python" --version)"
    rm -rf .venv
    "$python" -m venv .venv || die "\`$python -m venv .venv\` failed."
fi

say "installing ale-py, gymnasium, mujoco and tensorboard into .venv (about 500 MB, a minute or two)"
.venv/bin/python -m pip install --disable-pip-version-check --requirement "$requirements" \
    >"$log" 2>&1 || {
    tail -n 3 "$log" >&2
    die "pip could not install the packages of $requirements: see $log. Without a network, set PIP_FIND_LINKS to a directory of wheels."
}

.venv/bin/python - >>"$log" 2>&1 <<'PYTHON' || die "The installed Python packages do not work: see $log."
import ale_py, ale_py.roms, gymnasium, mujoco
assert ale_py.roms.get_rom_path("seaquest"), "ale-py came without ROMs"
ale_py.ALEVectorInterface
PYTHON
.venv/bin/tensorboard --version >>"$log" 2>&1 ||
    die "TensorBoard does not start: see $log."

printf '%s' "$wanted" >"$mark"
say "done"
