#!/usr/bin/env bash
# Compiles a program unless it is there, newer than all of its sources, and of the same options:
# `scripts/build.sh PROGRAM CARGO-ARGUMENTS...`. Cargo alone would wait for its lock while
# something else is being compiled.
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
# Cargo leaves the program as it is where only tests or comments are newer.
touch "$program"
printf '%s\n' "$*" >"$options"
