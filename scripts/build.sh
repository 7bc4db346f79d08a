#!/usr/bin/env bash
# Compiles a program unless it exists with the same options and is newer than all its sources:
# `scripts/build.sh PROGRAM CARGO-ARGUMENTS...`. Cargo would wait for its lock during another build.
set -euo pipefail

program=$1
shift
options="$program.options"
sources=(crates envs vendor Cargo.toml Cargo.lock .cargo)
if [ -x "$program" ] && [ "$(cat "$options" 2>/dev/null)" = "$*" ] &&
    [ -z "$(find "${sources[@]}" -newer "$program" -not -path '*/tests/*' -print -quit)" ]; then
    exit 0
fi
cargo build "$@"
# Cargo does not rewrite the program if only tests or comments are newer.
touch "$program"
printf '%s\n' "$*" >"$options"
