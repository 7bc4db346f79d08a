"""A Decision Transformer that is told the last return by adaptive layer norm, in PyTorch and double
precision: a golden file of our own.

    python scripts/peers/adaln_golden.py crates/train/tests/golden

Written from the equations in crates/model/src/return_modulation.rs. The file holds the initial
parameters, a batch for each of 20 steps, the first step's outputs and gradients, all losses, and
the parameters in the end. Weights are `[in, out]`, under the names that our checkpoints give them.
"""

import math
import sys
from pathlib import Path

import torch
from torch.nn import functional as F

from value_golden import save

BATCH, TIME, OBSERVATION, ACTION, WIDTH = 4, 5, 11, 3, 16
LAYERS, HEADS, HORIZON, STEPS = 2, 2, 9, 20
N_PADDING = (0, 2, 0, 4)


def parameters():
    """Random, none at what it begins with, so that every part shows."""
    shapes = {
        "encoder.weight": (OBSERVATION, WIDTH), "encoder.bias": (WIDTH,),
        "action.weight": (ACTION, WIDTH), "action.bias": (WIDTH,),
        "positions.table": (HORIZON, WIDTH),
        "positions.norm_weight": (WIDTH,), "positions.norm_bias": (WIDTH,),
        "modulation.weight": (1, 2 * WIDTH), "modulation.bias": (2 * WIDTH,),
        "head.weight": (WIDTH, ACTION), "head.bias": (ACTION,),
    }
    for layer in range(LAYERS):
        block = f"transformer.blocks.{layer}."
        shapes |= {
            block + "norm_1_weight": (WIDTH,), block + "norm_1_bias": (WIDTH,),
            block + "qkv_weight": (WIDTH, 3 * WIDTH), block + "qkv_bias": (3 * WIDTH,),
            block + "projection_weight": (WIDTH, WIDTH), block + "projection_bias": (WIDTH,),
            block + "norm_2_weight": (WIDTH,), block + "norm_2_bias": (WIDTH,),
            block + "mlp_1_weight": (WIDTH, 4 * WIDTH), block + "mlp_1_bias": (4 * WIDTH,),
            block + "mlp_2_weight": (4 * WIDTH, WIDTH), block + "mlp_2_bias": (WIDTH,),
        }
    named = {}
    for name, shape in shapes.items():
        value = 0.3 * torch.randn(shape)
        named[name] = (value + 1 if "norm" in name and "weight" in name else value).requires_grad_()
    return named


def predict(p, batch, n_padding):
    """Actions at every observation, `[batch, time, ACTION]`."""
    def affine(x, name):
        return x @ p[name + "weight"] + p[name + "bias"]

    def norm(x, name=None):
        given = (p[name + "weight"], p[name + "bias"]) if name else (None, None)
        return F.layer_norm(x, (WIDTH,), *given)

    place = p["positions.table"][batch["timesteps"].long().clamp(0, HORIZON - 1)]
    embedded = affine(batch["observations"], "encoder.")
    tokens = torch.stack([embedded + place, affine(batch["actions"], "action.") + place], 2)
    x = norm(tokens.reshape(BATCH, 2 * TIME, WIDTH), "positions.norm_")
    at = torch.arange(2 * TIME)
    real = at >= 2 * torch.tensor(n_padding)[:, None]
    seen = (at[:, None] >= at) & (real[:, None] | torch.eye(2 * TIME, dtype=torch.bool))
    for layer in range(LAYERS):
        block = f"transformer.blocks.{layer}."
        parts = affine(norm(x, block + "norm_1_"), block + "qkv_").split(WIDTH, 2)
        query, key, value = (part.view(BATCH, 2 * TIME, HEADS, -1).transpose(1, 2)
                             for part in parts)
        scores = query @ key.transpose(2, 3) / math.sqrt(WIDTH // HEADS)
        weights = scores.masked_fill(~seen[:, None], -math.inf).softmax(-1)
        mixed = (weights @ value).transpose(1, 2).reshape(BATCH, 2 * TIME, WIDTH)
        x = x + affine(mixed, block + "projection_")
        x = x + affine(F.relu(affine(norm(x, block + "norm_2_"), block + "mlp_1_")), block + "mlp_2_")
    hidden = x[:, ::2]
    scale, shift = affine(batch["returns_to_go"][..., None], "modulation.").split(WIDTH, 2)
    return torch.tanh(affine((1 + scale) * norm(hidden) + shift, "head."))


def main():
    torch.set_default_dtype(torch.float64)
    folder = Path(sys.argv[1])
    real = torch.tensor([[t >= pad for t in range(TIME)] for pad in N_PADDING])
    torch.manual_seed(0)
    p = parameters()
    first = torch.randint(0, 7, (STEPS, BATCH, 1))
    timesteps = first + torch.arange(TIME) - torch.tensor(N_PADDING)[:, None]
    batches = {
        "observations": torch.randn(STEPS, BATCH, TIME, OBSERVATION),
        "actions": torch.rand(STEPS, BATCH, TIME, ACTION) * 2 - 1,
        "returns_to_go": 2 * torch.rand(STEPS, BATCH, TIME),
        "timesteps": timesteps.clamp(min=0).double(),
    }
    tensors = {f"batch/{name}": values for name, values in batches.items()}
    tensors["n_padding"] = torch.tensor(N_PADDING).double()
    tensors |= {f"initial/{name}": value.detach().clone() for name, value in p.items()}
    optimizer = torch.optim.AdamW(p.values(), lr=3e-3, weight_decay=1e-2)
    losses = []
    for step in range(STEPS):
        batch = {name: values[step] for name, values in batches.items()}
        predicted = predict(p, batch, N_PADDING)
        errors = ((predicted - batch["actions"]) ** 2).mean(-1)
        loss = errors[real].mean()
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            tensors["outputs"] = predicted.detach().clone()
            tensors |= {f"gradient/{name}": value.grad.clone() for name, value in p.items()}
        losses.append(loss.item())
        optimizer.step()
    tensors["loss"] = torch.tensor(losses)
    tensors |= {f"final/{name}": value.detach().clone() for name, value in p.items()}
    save(folder / "adaln.safetensors", tensors)


if __name__ == "__main__":
    main()
