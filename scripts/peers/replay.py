#!/usr/bin/env python3
"""Reads a DQN-replay log and samples batches in plain NumPy. `cargo bench … --bench full_size` times
it next to Overtone.

    scripts/peers/replay.py inflate FILE...                       # np.load of each gzip file
    scripts/peers/replay.py batches STORE --form reference        # float32 stacks, as published
    scripts/peers/replay.py batches STORE --form frames           # bytes, every frame once
    scripts/peers/replay.py forget STORE                          # drops its pages from memory

STORE is a file that Overtone converted (frames.safetensors); the program maps it. A batch is 64
contexts of 30 timesteps at random places, with actions, returns-to-go and timesteps.

Forms of `batches`:
    reference  the dataset of the published Decision Transformer: for each context it gathers 30
               stacks of 4 frames, converts them to float32 and divides by 255. Its stacks lie in
               memory (14 GB); here they are views of the mapped frames, which is cheaper.
    frames     the 33 distinct frames of each context as bytes, one memory copy each: the fastest
               form that we know in NumPy
"""

import argparse
import gzip
import json
import os
import time

import numpy as np

CONTEXT, STACK, BATCH, FRAME = 30, 4, 64, (84, 84)
TYPES = {"U8": np.uint8, "I64": np.int64, "F32": np.float32}


class Store:
    """The tensors of a converted dataset, the frames mapped."""

    def __init__(self, path):
        with open(path, "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(size))
        header.pop("__metadata__")
        tensors = {
            name: np.memmap(path, TYPES[entry["dtype"]], "r", 8 + size + entry["data_offsets"][0],
                            tuple(entry["shape"]))
            for name, entry in header.items()
        }
        # An ordinary array over the same memory, because slicing a memmap is slow.
        self.frames = np.asarray(tensors["frames"])
        self.actions = np.array(tensors["actions"])
        self.starts = np.array(tensors["episode_starts"])
        lengths = np.array(tensors["episode_lengths"])
        self.ends = self.starts + lengths
        self.start_of = np.repeat(self.starts, lengths)
        rewards = np.array(tensors["rewards"])
        self.to_go = np.empty_like(rewards)
        for start, end in zip(self.starts, self.ends):
            self.to_go[start:end] = np.cumsum(rewards[start:end][::-1])[::-1]

    def window(self, row):
        """The full context that ends with `row`, or the first context."""
        end = max(row + 1, CONTEXT)
        return end - CONTEXT, end

    def columns(self, windows):
        actions = np.stack([self.actions[a:b] for a, b in windows]).astype(np.int64)
        to_go = np.stack([self.to_go[a:b] for a, b in windows])
        timesteps = np.array([a - self.start_of[a] for a, _ in windows])
        return actions, to_go, timesteps

    def stack(self, row):
        """The observation of `row`, black before the start of its episode: `[4, 84, 84]`."""
        first = row - STACK + 1
        missing = self.start_of[row] - first
        if missing <= 0:
            return self.frames[first:row + 1]
        return np.concatenate([np.zeros((missing, *FRAME), np.uint8),
                               self.frames[first + missing:row + 1]])

    def reference(self, windows):
        """`[64, 30, 28224]`, float32 in [0, 1]."""
        contexts = []
        for a, b in windows:
            stacks = np.array([self.stack(row) for row in range(a, b)])
            contexts.append(stacks.reshape(CONTEXT, -1).astype(np.float32) / 255.0)
        return np.stack(contexts)

    def distinct(self, windows):
        """`[64, 33, 84, 84]`, bytes."""
        out = np.zeros((len(windows), CONTEXT + STACK - 1, *FRAME), np.uint8)
        for i, (a, b) in enumerate(windows):
            first = max(a - STACK + 1, 0)
            out[i, first - b:] = self.frames[first:b]
        return out


def inflate(paths):
    start, total = time.perf_counter(), 0
    for path in paths:
        with gzip.open(path) as file:
            total += np.load(file, allow_pickle=False).nbytes
    print(json.dumps({"seconds": time.perf_counter() - start, "bytes": total}))


def batches(path, form, count):
    store = Store(path)
    generator = np.random.default_rng(1)
    draw = store.reference if form == "reference" else store.distinct
    warm_up = 2
    for batch in range(warm_up + count):
        if batch == warm_up:
            start = time.perf_counter()
        rows = generator.integers(0, len(store.actions), BATCH)
        windows = [store.window(row) for row in rows]
        store.columns(windows)
        draw(windows)
    print(json.dumps({"batches_per_s": count / (time.perf_counter() - start)}))


def forget(path):
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("inflate")
    command.add_argument("files", nargs="+")
    command = commands.add_parser("batches")
    command.add_argument("store")
    command.add_argument("--form", choices=("reference", "frames"), required=True)
    command.add_argument("--count", type=int, default=20)
    command = commands.add_parser("forget")
    command.add_argument("store")
    arguments = parser.parse_args()
    if arguments.command == "inflate":
        inflate(arguments.files)
    elif arguments.command == "batches":
        batches(arguments.store, arguments.form, arguments.count)
    else:
        forget(arguments.store)


if __name__ == "__main__":
    main()
