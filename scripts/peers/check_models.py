"""Checks that the PyTorch models equal Overtone's: the same number of parameters, and the same loss
for the same weights and batch."""

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

# docs/results/speed.md has the largest difference seen.
TOLERANCE = 1e-5


def read_safetensors(path: Path) -> dict:
    """Tensors of a safetensors file of 32-bit floats, by name."""
    import torch

    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    found = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        array = np.frombuffer(data[begin:end], "<f4").reshape(entry["shape"]).copy()
        found[name] = torch.from_numpy(array)
    return found


def check(bench: str, preset: str) -> dict:
    """Compares one preset; each option of the model must give the same loss.

    Returns the number of parameters, Overtone's loss and the largest difference from it. Raises
    ValueError if they differ.
    """
    import atari_dt
    import gym_dt
    import torch

    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([bench, "export", preset, "3", folder], check=True)
        weights = read_safetensors(Path(folder, "weights.safetensors"))
        batch = read_safetensors(Path(folder, "batch.safetensors"))
        wanted = float(Path(folder, "loss.txt").read_text())
    if preset == "atari":
        rows = weights["positions.global"].shape[0]
        makers = [lambda options=options: atari_dt.DecisionTransformer(rows - 1, *options)
                  for options in ((True, False, False), (False, True, True))]
        load = atari_dt.load_overtone
        inputs = (atari_dt.stacks(batch["frames"].to(torch.uint8)), batch["actions"].long(),
                  batch["returns_to_go"], batch["global_timesteps"].long())
    else:
        makers = [lambda options=options: gym_dt.DecisionTransformer(*options)
                  for options in ((True, False), (False, True))]
        load = gym_dt.load_overtone
        inputs = (batch["observations"], batch["actions"], batch["returns_to_go"],
                  batch["timesteps"].long(), torch.ones(batch["returns_to_go"].shape))
    ours = sum(tensor.numel() for tensor in weights.values())
    worst = 0.0
    for make in makers:
        model = make().eval()
        unused = weights.keys() - load(model, weights)
        if unused:
            raise ValueError(f"{preset}: PyTorch's model lacks {sorted(unused)}")
        theirs = sum(parameter.numel() for parameter in model.parameters())
        if theirs != ours:
            raise ValueError(f"{preset}: {ours} parameters in Overtone, {theirs} in PyTorch")
        with torch.no_grad():
            worst = max(worst, abs(model.loss(*inputs).item() - wanted))
    if worst > TOLERANCE:
        raise ValueError(f"{preset}: losses differ by {worst} from {wanted}")
    return {"parameters": ours, "loss": wanted, "largest_difference": worst}
