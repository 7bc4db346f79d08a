"""Writes the recorded episodes that tests/recorded.rs replays.

    python make.py DATA

DATA contains GAME/1/replay_logs like the DQN Replay Dataset, recorded with ale-py 0.12.1: sticky
actions 0.25 on each of 4 frames, no no-ops, emulator seed 500 + i for game i. The script takes the
first episode of each game's first file: actions, clipped rewards, the sum of each frame's pixels,
and a SHA-256 of all frames. The first three slots are zero padding.
"""

import gzip
import hashlib
import json
import sys
from pathlib import Path

import numpy as np

for i, game in enumerate(["Seaquest", "Gravitar", "BankHeist", "DoubleDunk"]):
    logs = Path(sys.argv[1]) / game / "1" / "replay_logs"

    def column(name):
        with gzip.open(logs / f"$store$_{name}_ckpt.0.gz") as file:
            return np.load(file)

    end = int(column("terminal").argmax()) + 1
    frames = column("observation")[3:end]
    episode = {
        "ale_seed": 500 + i,
        "actions": column("action")[3:end].tolist(),
        "rewards": column("reward")[3:end].astype(int).tolist(),
        "frame_sums": frames.sum(axis=(1, 2), dtype=np.int64).tolist(),
        "frames_sha256": hashlib.sha256(frames.tobytes()).hexdigest(),
    }
    Path(__file__).with_name(f"{game}.json").write_text(json.dumps(episode) + "\n")
    print(game, len(frames), "steps, return", sum(episode["rewards"]), "(clipped)")
