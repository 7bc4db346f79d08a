#!/usr/bin/env python3
"""A training step of the Atari Decision Transformer in PyTorch (docs/gpu.md):

    gpu_step.py BATCH VARIANT STEPS DEVICE

The program prints a number when it is ready. For each input line it takes STEPS steps and prints the
seconds of one. The batch is on the device, and only the last loss of a round is read from it.
VARIANT is one or more words, joined by `+`:

    eager                       the model as PyTorch runs it
    tf32                        products of float32 matrices in TF32
    bf16                        autocast to bfloat16
    channels_last, sdpa, fused, compile
                                memory layout of the encoder; scaled_dot_product_attention;
                                fused AdamW; torch.compile over the model and its loss
"""

import sys
import time

WARM_UP_STEPS = 5
MAX_TIMESTEP = 4000
KNOWN = {"eager", "tf32", "bf16", "channels_last", "sdpa", "fused", "compile"}


def main():
    batch, variant, steps, device = sys.argv[1:]
    batch, words, steps = int(batch), set(variant.split("+")), int(steps)
    if not words <= KNOWN:
        raise SystemExit(f"gpu_step: unknown variant {sorted(words - KNOWN)}")
    import torch

    import atari_dt

    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = "tf32" in words
    model = atari_dt.DecisionTransformer(
        MAX_TIMESTEP, channels_last="channels_last" in words, sdpa="sdpa" in words).to(device)
    inputs = [tensor.to(device) for tensor in atari_dt.random_batch(batch)]
    optimizer = atari_dt.optimizer(model, "fused" in words)
    loss_of = torch.compile(model.loss) if "compile" in words else model.loss
    parameters = list(model.parameters())

    def take(n):
        for _ in range(n):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device, torch.bfloat16, enabled="bf16" in words):
                loss = loss_of(*inputs)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
        if not loss.item() < float("inf"):
            raise SystemExit("the loss is not finite")

    take(WARM_UP_STEPS)
    print(0, flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        take(steps)
        print((time.perf_counter() - start) / steps, flush=True)


if __name__ == "__main__":
    main()
