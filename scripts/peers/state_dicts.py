"""Writes the state dicts for crates/agents/tests/state_dict.rs with torch.save:

    python scripts/peers/state_dicts.py

gym.pt, older.pt and halves.pt hold the weights of crates/testkit/golden/dt_gym_weights.safetensors.
older.pt has the format of torch before 1.6, without checksums. halves.pt has half precision; every
other tensor is bfloat16. The tensors of atari.pt are views of a few numbers each, like saved slices,
and are stored under a key next to the step of an optimizer.
"""

import json
import struct
from pathlib import Path

import torch

CRATES = Path(__file__).resolve().parents[2] / "crates"
OUT = CRATES / "agents" / "tests" / "state_dict"
WIDTH, ACTIONS, CONTEXT, LAST_TIMESTEP = 8, 6, 2, 6


def golden():
    """The tensors of the golden file, without a library."""
    raw = (CRATES / "testkit" / "golden" / "dt_gym_weights.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header, data = json.loads(raw[8:8 + length]), raw[8 + length:]
    header.pop("__metadata__", None)
    kinds = {"F32": torch.float32, "F64": torch.float64}
    for name, about in header.items():
        begin, end = about["data_offsets"]
        flat = torch.frombuffer(bytearray(data[begin:end]), dtype=kinds[about["dtype"]])
        yield name, flat.reshape(about["shape"])


def view(*shape):
    """`[i, j, k, …]` is number i + 2j + 3k + … of a row of numbers, 0.01 apart from -0.5 on."""
    strides = list(range(1, len(shape) + 1))
    numbers = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides))
    return torch.as_strided(torch.arange(numbers) / 100 - 0.5, shape, strides)


def atari():
    shapes = {
        "pos_emb": (1, 3 * CONTEXT + 1, WIDTH), "global_pos_emb": (1, LAST_TIMESTEP + 1, WIDTH),
        "ret_emb.0.weight": (WIDTH, 1), "ret_emb.0.bias": (WIDTH,),
        "action_embeddings.0.weight": (ACTIONS, WIDTH),
        "state_encoder.0.weight": (32, 4, 8, 8), "state_encoder.0.bias": (32,),
        "state_encoder.2.weight": (64, 32, 4, 4), "state_encoder.2.bias": (64,),
        "state_encoder.4.weight": (64, 64, 3, 3), "state_encoder.4.bias": (64,),
        "state_encoder.7.weight": (WIDTH, 3136), "state_encoder.7.bias": (WIDTH,),
        "ln_f.weight": (WIDTH,), "ln_f.bias": (WIDTH,), "head.weight": (ACTIONS, WIDTH),
    }
    for block in range(2):
        for name, out, inputs in [("mlp.0", 4 * WIDTH, WIDTH), ("mlp.2", WIDTH, 4 * WIDTH),
                                  *((f"attn.{part}", WIDTH, WIDTH)
                                    for part in ["query", "key", "value", "proj"])]:
            shapes[f"blocks.{block}.{name}.weight"] = (out, inputs)
            shapes[f"blocks.{block}.{name}.bias"] = (out,)
        for norm in ["ln1", "ln2"]:
            shapes[f"blocks.{block}.{norm}.weight"] = (WIDTH,)
            shapes[f"blocks.{block}.{norm}.bias"] = (WIDTH,)
    tensors = {name: view(*shape) for name, shape in shapes.items()}
    # The published causal mask, and a parallel module's prefix.
    tensors["blocks.0.attn.mask"] = torch.ones(1, 1, 7, 7, dtype=torch.bool)
    return {f"module.{name}": tensor for name, tensor in tensors.items()}


def main():
    OUT.mkdir(exist_ok=True)
    torch.save(dict(golden()), OUT / "gym.pt")
    torch.save(dict(golden()), OUT / "older.pt", _use_new_zipfile_serialization=False)
    halves = [torch.float16, torch.bfloat16]
    torch.save({name: tensor.to(halves[i % 2]) for i, (name, tensor) in enumerate(golden())},
               OUT / "halves.pt")
    torch.save({"model_state_dict": atari(), "step": 3}, OUT / "atari.pt")


if __name__ == "__main__":
    main()
