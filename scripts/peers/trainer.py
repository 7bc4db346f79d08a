#!/usr/bin/env python3
"""One PyTorch variant of a training step, in a process of its own:

    trainer.py PRESET BATCH VARIANT STEPS

The protocol is the same as in crates/train/benches/training_cost. The program prints a number when it
is ready. For each input line it takes STEPS steps and prints the seconds of one. When its input ends
it prints its peak memory in kilobytes (1024 bytes).

A variant is one or more words, joined by `+`:

    published      the model of the published code, with its slow parts
    eager          the same model without them
    channels_last, sdpa, fused, compile
                   memory layout of the encoder; scaled_dot_product_attention; fused AdamW;
                   torch.compile over the model and its loss
    medium         products of float32 matrices may be computed from bfloat16 pieces
    bf16           autocast to bfloat16
    d3rlpy         `update` of the library d3rlpy
    multiply       PRESET and BATCH do not matter: a step is one product of 1024 x 1024 matrices
"""

import os
import sys
import time

WARM_UP_STEPS = 3
MAX_TIMESTEP = 4000
KNOWN = {"published", "eager", "channels_last", "sdpa", "fused", "compile", "medium", "bf16"}


def step_of(preset, batch, words):
    """A function that takes one training step."""
    import torch

    if "medium" in words:
        torch.set_float32_matmul_precision("medium")
    import atari_dt
    import gym_dt

    torch.manual_seed(1)
    published, sdpa = "published" in words, "sdpa" in words
    if preset == "atari":
        model = atari_dt.DecisionTransformer(MAX_TIMESTEP, published, "channels_last" in words, sdpa)
        inputs, optimizer = atari_dt.random_batch(batch), atari_dt.optimizer(model, "fused" in words)
    else:
        model = gym_dt.DecisionTransformer(published, sdpa)
        inputs, optimizer = gym_dt.random_batch(batch), gym_dt.optimizer(model, "fused" in words)
    loss_of = torch.compile(model.loss) if "compile" in words else model.loss
    parameters = list(model.parameters())

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled="bf16" in words):
            loss = loss_of(*inputs)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        if not (loss.item() < float("inf") and norm.item() < float("inf")):
            raise SystemExit("the loss is not finite")

    return step


def multiply():
    """A function that multiplies two matrices."""
    import torch

    left, right = torch.rand(1024, 1024), torch.rand(1024, 1024)
    return lambda: left @ right


def main():
    preset, batch, variant, steps = sys.argv[1:]
    batch, steps, words = int(batch), int(steps), set(variant.split("+"))
    import torch

    torch.set_num_threads(os.cpu_count())
    if variant == "multiply":
        step = multiply()
    elif variant == "d3rlpy":
        import d3rlpy_step

        step = d3rlpy_step.step_of(preset, batch)
    elif words <= KNOWN:
        step = step_of(preset, batch, words)
    else:
        raise SystemExit(f"trainer: unknown variant {sorted(words - KNOWN)}")
    for _ in range(WARM_UP_STEPS):
        step()
    print(0, flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        for _ in range(steps):
            step()
        print((time.perf_counter() - start) / steps, flush=True)
    with open("/proc/self/status", encoding="ascii") as status:
        peak = next(line for line in status if line.startswith("VmHWM:"))
    print(peak.split()[1], flush=True)


if __name__ == "__main__":
    main()
