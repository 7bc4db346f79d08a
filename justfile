# Overtone's commands. `key=value` after a recipe goes to the program:
#
#     just train game=seaquest head=fourier seed=231
#     just train env=hopper dataset=medium attention=fourier seed=2
#
# and before it, sets a variable of this file:
#
#     just features=overtone/cuda train game=seaquest

set positional-arguments
set shell := ["bash", "-euo", "pipefail", "-c"]

# Cargo features of every build and test, e.g. `overtone/cuda` (docs/gpu.md).
features := ""

# Every recipe that compiles uses these words, so that the dependencies, most of the
# build time, are compiled once and serve building, testing and benchmarking alike.
# `--bin` then selects the program: nothing else is compiled.
cargo_args := "--workspace --locked --features '" + features + "'"
ignored := if env("OVERTONE_TEST_ALL", "") == "" { "" } else { "-- --include-ignored" }
programs := env("CARGO_TARGET_DIR", "target") / "release"
overtone := programs / "overtone"
wheels := env("CARGO_TARGET_DIR", "target") / "wheels"
# Maturin uses these features instead of those in pyproject.toml.
wheel_features := if features == "" { "" } else { "--features 'extension-module " + features + "'" }

# List the commands
default:
    @just --list --unsorted

# Train an agent, then evaluate it: just train game=seaquest | env=hopper [key=value...]
[no-exit-message]
train *args: build
    @"{{ overtone }}" train "$@"

# Evaluate a run's agent: just evaluate rollouts [run=... episodes=100 target=16,32]
[no-exit-message]
evaluate *args: build
    @"{{ overtone }}" evaluate "$@"

# Estimate how good an agent is from a recording, without playing: just judge [run=... dataset=...]
[no-exit-message]
judge *args: build
    @"{{ overtone }}" judge "$@"

# Write a report about runs: scores with intervals, curves, a video: just report [RUN...]
[no-exit-message]
report *args: build
    @"{{ overtone }}" report "$@"

# Record a video of one episode of the last evaluation: just video [run=... episode=best]
[no-exit-message]
video *args: build
    @"{{ overtone }}" video "$@"

# Record episodes as a dataset: just record task=gymnasium/CartPole-v1 to=records/cartpole [policy=random|RUN,...]
[no-exit-message]
record *args: build
    @"{{ overtone }}" record "$@"

# Run a grid of runs and compare them: just study run game=seaquest head=linear,fourier seed=1..5 | status | report
[no-exit-message]
study *args: build
    @"{{ overtone }}" study "$@"

# Resume an interrupted run, the newest by default: just resume [run=...]
[no-exit-message]
resume *args: build
    @"{{ overtone }}" resume "$@"

# Download a published dataset: just download game=seaquest [files=10 plan=true] | env=hopper dataset=medium
[no-exit-message]
download *args: build
    @"{{ overtone }}" download "$@"

# Send curves to a tracker: just track wandb|mlflow|trackio RUN... [project=... follow=true]
[no-exit-message]
track *args: setup
    @.venv/bin/python python/overtone/_track.py "$@"

# Export an agent: just export RUN format=safetensors DIRECTORY; for transformers: to=DIRECTORY [run=...]
[no-exit-message]
export *args: build
    @"{{ overtone }}" export "$@"

# Import an exported agent as a run: just import DIRECTORY [task=... statistics=...]
[no-exit-message]
import *args: build
    @"{{ overtone }}" import "$@"

# Inspect or check a dataset: just data inspect PATH [json=true] | lint PATH [json=true] | convert IN OUT
[no-exit-message]
data *args: build
    @"{{ overtone }}" data "$@"

# Repeat the papers' experiments: just lab density [quick=true key=value...]; --help lists all
lab *args: (build "overtone-lab")
    @"{{ programs }}/overtone-lab" "$@"

# Check a GPU against the CPU and time it: just features=overtone/cuda gpu-check [key=value...]
gpu-check *args: (build "overtone-gpu-check")
    @scripts/gpu-check.sh "{{ programs }}/overtone-gpu-check" "$@"

# Show the curves of every run in the browser
tensorboard *args: setup
    @.venv/bin/tensorboard --logdir runs "$@"

# Kill training at random instants and compare it with undisturbed runs [n=100 seed=1]
kills *args: build
    @.venv/bin/python scripts/kills.py "$@"

# Record or convert a public dataset from packages alone: just public [SET], without a name the list
public *args:
    @[ -x .venv-public/bin/python ] || scripts/public/setup.sh
    @.venv-public/bin/python scripts/public/record.py "$@"

# Train agents of Overtone and d3rlpy on a public dataset for minutes of one core, and play them: just bench-public SET [minutes=3] [seeds=1,2]
bench-public *args: build
    @scripts/public/setup.sh agents
    @.venv-public/bin/python scripts/public/agents.py "$@"

# Install the Python packages; fast if none is missing
setup:
    @scripts/setup.sh >&2

# Compile a program: overtone, overtone-lab or overtone-gpu-check
build program="overtone": setup
    @scripts/build.sh "{{ programs }}/{{ program }}" --release {{ cargo_args }} --bin {{ program }}

# Run every test: 9 minutes on 2 cores after a build. OVERTONE_TEST_ALL=1 adds tests that need Slurm, MPI or Minari
test: setup
    cargo test --release {{ cargo_args }} {{ ignored }}
    cargo build --release {{ cargo_args }} --lib --bin overtone
    scripts/python_tests.sh "{{ programs }}"
    # Compile what is behind features too. This needs neither CUDA nor MPI.
    cargo check --release --locked --package overtone --package overtone-gpu-check --features overtone-gpu-check/cuda,overtone/mpi --lib --bins --test suite --test launches

# Run the quick unit tests of the crates, in under a minute
test-fast: setup
    cargo test --release {{ cargo_args }} --lib

# Build the Python package, with the program, as a wheel in target/wheels
wheel: setup
    scripts/stage-datasets.sh
    .venv/bin/python -m pip install --quiet --disable-pip-version-check 'maturin>=1.9.4,<2'
    rm -f -- "{{ wheels }}"/overtone_rl-*.whl
    .venv/bin/maturin build --release --strip --locked --interpreter .venv/bin/python {{ wheel_features }}

# Build the wheel as a release does, in an empty folder, and try it without Rust: just release [FOLDER]
release *args:
    @scripts/release.sh "$@"

# Build the documentation as a site in target/site, without external resources
site: site-setup
    @NO_MKDOCS_2_WARNING=1 .venv-site/bin/mkdocs build --strict

# Run the notebooks and save their output: just notebooks [NAME...]
notebooks *args: wheel site-setup
    @.venv-site/bin/python -m pip install --quiet --disable-pip-version-check --requirement scripts/site/notebooks.txt
    @.venv-site/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "{{ wheels }}"/overtone_rl-*.whl
    @.venv-site/bin/python -m pip install --quiet --disable-pip-version-check "$(echo "{{ wheels }}"/overtone_rl-*.whl)[mujoco]"
    @.venv-site/bin/python scripts/site/notebooks.py "$@"

[private]
site-setup:
    @.venv-site/bin/python -c 'import pip' 2>/dev/null || python3 -m venv --clear .venv-site
    @.venv-site/bin/python -m pip install --quiet --disable-pip-version-check --requirement scripts/site/requirements.txt

# Test every reader with damaged and hostile files: a table [n=100000 target=npy seed=1]
hostile *args: setup
    @OVERTONE_HOSTILE="$*" cargo test --release {{ cargo_args }} --test hostile no_reader -- --nocapture

# Compare with the reference's recorded numbers in DIR
golden dir: setup
    @GOLDEN_DIR="$(cd -- "$1" && pwd -P)" && export GOLDEN_DIR && cargo test --release {{ cargo_args }} --test 'golden*' -- --nocapture

# Run all checks of a change: format, crate map, lints, tests, documentation
check: setup && test
    cargo fmt --all --check
    .venv/bin/python .ci/check-map
    .ci/check-features
    cargo clippy --release {{ cargo_args }} --all-targets -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --release {{ cargo_args }} --no-deps

# Run the benchmarks
bench *args: setup
    cargo bench {{ cargo_args }} --bench '*' -- "$@"

# Time the same work in Overtone and in PyTorch, after `just wheel`: just bench-peers [training|rollouts|robots|python|job]; agents compared with d3rlpy's: just bench-peers earned, or parity|score data=FOLDER
bench-peers *args: build
    @scripts/peers/setup.sh >&2
    @.venv-peers/bin/python scripts/peers/bench.py --programs "{{ programs }}" --features '{{ features }}' "$@"
