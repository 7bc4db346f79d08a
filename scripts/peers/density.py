#!/usr/bin/env python3
"""How long PyTorch takes to train the toy networks that `just lab density` trains.

    pip install torch numpy
    scripts/peers/density.py                      # eager, one process a core
    scripts/peers/density.py --form stacked       # many runs in one batched network

The same work: the rows of gmm2 with data seed 42, a perceptron 2 -> 64 -> 32 -> head, 32 rows a
step, 125 steps an epoch, Adam with 1e-3. As many processes as there are cores, each on one
thread, train at once; printed are the wall's seconds divided by the epochs of all runs, which
`just lab density timing=true` prints too, and the processor's seconds, which other work on
the machine changes less.

Forms:
    eager     a module and torch.optim.Adam for each run, as the reference has them, but rows are
              taken from tensors rather than from a DataLoader
    fused     eager with Adam's fused implementation
    compiled  the fused form, loss and gradients through torch.compile
    stacked   --runs runs of a process as one network with batched matrix products (what
              torch.func.vmap would make of them) and one fused Adam over the stacked parameters
    stacked-compiled  the same through torch.compile

The Fourier head is the form that Overtone uses, which asks for the amplitude at the right bin
alone: p_t = |A(b_t)|^2 / (m sum |a|^2). The reference's form, with complex convolutions and all
bins, would take longer.
"""

import argparse
import math
import multiprocessing
import os
import queue
import time

import numpy as np

ROWS, TEST_ROWS, BINS, BATCH, KAPPA = 5000, 1000, 50, 32, 1e-5
FREQUENCIES, COMPONENTS = 12, 2
HEADS = ("linear", "fourier-12", "fourier-12-reg", "gmm")
GAMMA = 1e-6
STEPS = (ROWS - TEST_ROWS) // BATCH


def rows():
    """The training rows of gmm2, data seed 42: bins of x, y and z."""
    generator = np.random.default_rng(42)
    x = generator.uniform(-0.8, 0.8, ROWS)
    y = generator.uniform(-0.8, 0.8, ROWS)
    z = np.array([generator.normal(a if generator.uniform() < 0.5 else b, 0.1)
                  for a, b in zip(x, y)])
    edges = np.linspace(-1, 1, BINS + 1)
    bins = np.clip(np.digitize(np.stack([x, y, z], 1), edges) - 1, 0, BINS - 1)
    return bins[np.random.RandomState(42).permutation(ROWS)[TEST_ROWS:]]


def width(head):
    return {"linear": BINS, "gmm": COMPONENTS}.get(head, 2 * (FREQUENCIES + 1))


def constants(torch):
    centres = (2 * torch.arange(BINS) + 1) / BINS - 1
    angles = math.pi * centres[:, None] * torch.arange(FREQUENCIES + 1)
    return centres, torch.cos(angles), torch.sin(angles), slopes(torch)


def slopes(torch):
    """[2(N+1), 4(2N+1)]: coefficients times it are Re A, Im A and, but for a factor i, the real
    and imaginary part of A' on 2N+1 points, where the mean of (d|A|^2/dz)^2 is exact."""
    points = 2 * FREQUENCIES + 1
    l = torch.arange(FREQUENCIES + 1)[:, None]
    angles = math.pi * l * (2 * torch.arange(points) / points - 1)
    cos, sin = torch.cos(angles), torch.sin(angles)
    re, im = torch.cat([cos, -sin]), torch.cat([sin, cos])
    factor = math.pi * torch.cat([l, l])
    return torch.cat([re, im, factor * re, factor * im], 1)


def roughness(out, table):
    """gamma 4 pi^2 sum k^2 |c_k|^2 of each row, c the autocorrelation of the coefficients."""
    re, im, re_slope, im_slope = (out @ table).chunk(4, -1)
    derivative = 2 * (im * re_slope - re * im_slope)
    return 2 * GAMMA * (derivative * derivative).mean(-1)


def losses(torch, head, out, raw, bins, tables):
    """The loss of each row. `out` is [..., rows, width]; `raw` the mixture's deviations."""
    centres, cos, sin, table = tables
    if head == "linear":
        largest = torch.logsumexp(out, -1)
        return largest - out.gather(-1, bins[..., None])[..., 0]
    if head == "gmm":
        std = torch.nn.functional.softplus(raw)[..., None, None, :]
        x = (centres[:, None] - torch.tanh(out)[..., None, :]) / std
        density = (torch.exp(-0.5 * x * x) / (std * math.sqrt(2 * math.pi))).mean(-1)
        logits = torch.log(density + KAPPA)
        return torch.logsumexp(logits, -1) - logits.gather(-1, bins[..., None])[..., 0]
    u, v = out[..., : FREQUENCIES + 1], out[..., FREQUENCIES + 1 :]
    c, s = cos[bins], sin[bins]
    re, im = (u * c - v * s).sum(-1), (u * s + v * c).sum(-1)
    power = (out * out).sum(-1)
    loss = -torch.log((re * re + im * im) / (BINS * power) + KAPPA) + math.log1p(BINS * KAPPA)
    return loss + roughness(out, table) if head.endswith("reg") else loss


def parameters(torch, head, n_runs):
    """Stacked parameters of `n_runs` networks, PyTorch's default initialisation."""
    made = []
    for inputs, outputs in ((2, 64), (64, 32), (32, width(head))):
        divisor = 100 if outputs == width(head) and head.startswith("fourier") else 1
        bound = 1 / math.sqrt(inputs)
        for shape in ((n_runs, inputs, outputs), (n_runs, 1, outputs)):
            made.append((torch.rand(shape) * 2 - 1) * bound / divisor)
    made.append(torch.full((n_runs, COMPONENTS), math.log(math.expm1(2 / BINS))))
    return [p.requires_grad_() for p in made]


def stacked_step(torch, head, tables, compiled):
    def loss(params, x, bins):
        hidden = torch.relu(torch.baddbmm(params[1], x, params[0]))
        hidden = torch.relu(torch.baddbmm(params[3], hidden, params[2]))
        out = torch.baddbmm(params[5], hidden, params[4])
        # Summed over runs: each run's gradient is that of its own mean.
        return losses(torch, head, out, params[6], bins, tables).mean(-1).sum()

    return torch.compile(loss) if compiled else loss


def module(torch, head, tables):
    """One run as the reference has it: a module."""

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = torch.nn.Sequential(
                torch.nn.Linear(2, 64), torch.nn.ReLU(), torch.nn.Linear(64, 32),
                torch.nn.ReLU(), torch.nn.Linear(32, width(head)))
            if head.startswith("fourier"):
                for p in self.body[4].parameters():
                    p.data /= 100
            start = math.log(math.expm1(2 / BINS))
            self.raw = torch.nn.Parameter(torch.full((COMPONENTS,), start)) if head == "gmm" else None

        def forward(self, x, bins):
            return losses(torch, head, self.body(x), self.raw, bins, tables).mean()

    return Network()


def work(arguments):
    """Trains in one process: wall's and processor's seconds, epochs of all its runs, first and
    last mean loss."""
    head, form, n_runs, epochs, process, barrier = arguments
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(process)
    data = torch.from_numpy(rows())
    x, bins = data[:, :2].float(), data[:, 2]
    tables = constants(torch)
    steps = STEPS

    if form.startswith("stacked"):
        params = parameters(torch, head, n_runs)
        loss_of = stacked_step(torch, head, tables, form == "stacked-compiled")
        used = params if head == "gmm" else params[:6]
        optimizer = torch.optim.Adam(used, lr=1e-3, fused=True)

        def epoch():
            order = torch.stack([torch.randperm(len(x)) for _ in range(n_runs)])
            total = 0.0
            for step in range(steps):
                chosen = order[:, step * BATCH : (step + 1) * BATCH]
                optimizer.zero_grad(set_to_none=True)
                loss = loss_of(params, x[chosen], bins[chosen])
                loss.backward()
                optimizer.step()
                total += loss.item() / n_runs
            return total / steps
    else:
        n_runs = 1
        network = module(torch, head, tables)
        loss_of = torch.compile(network) if form == "compiled" else network
        optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=form != "eager" or None)

        def epoch():
            order = torch.randperm(len(x))
            total = 0.0
            for step in range(steps):
                chosen = order[step * BATCH : (step + 1) * BATCH]
                optimizer.zero_grad(set_to_none=True)
                loss = loss_of(x[chosen], bins[chosen])
                loss.backward()
                optimizer.step()
                total += loss.item()
            return total / steps

    first = epoch()  # compiles, fills caches
    barrier.wait()
    start, busy = time.perf_counter(), time.process_time()
    for _ in range(epochs):
        last = epoch()
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    return seconds, busy, epochs * n_runs, first, last


def process(arguments, results):
    results.put(work(arguments))


def measure(head, form, n_runs, epochs, processes):
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(processes), context.Queue()
    workers = [
        context.Process(target=process, args=((head, form, n_runs, epochs, i, barrier), results))
        for i in range(processes)
    ]
    for worker in workers:
        worker.start()
    found = []
    while len(found) < processes:
        try:
            found.append(results.get(timeout=1))
        except queue.Empty:
            # The others would wait for one that failed.
            if any(worker.exitcode for worker in workers):
                for worker in workers:
                    worker.kill()
                raise RuntimeError(f"{head}, {form}: a process failed, and says why above") from None
    for worker in workers:
        worker.join()
    done = sum(epochs for _, _, epochs, *_ in found)
    longest = max(seconds for seconds, *_ in found)
    return longest / done, sum(busy for _, busy, *_ in found) / done, found[0][3], found[0][4]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--head", choices=HEADS, action="append", help="all of them by default")
    parser.add_argument("--form", default="eager",
                        choices=("eager", "fused", "compiled", "stacked", "stacked-compiled"))
    parser.add_argument("--runs", type=int, default=32, help="of a process, when stacked")
    parser.add_argument("--epochs", type=int, default=5, help="that are timed")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    chosen = parser.parse_args()
    print(f"{chosen.form}, {chosen.processes} processes"
          + (f" of {chosen.runs} runs" if chosen.form.startswith("stacked") else ""))
    print(f"{'head':>16}  ms per epoch of a run  µs per step of a run  CPU µs per step"
          "  mean loss: first, last epoch")
    for head in chosen.head or HEADS:
        seconds, busy, first, last = measure(
            head, chosen.form, chosen.runs, chosen.epochs, chosen.processes)
        print(f"{head:>16}  {1e3 * seconds:21.2f}  {1e6 * seconds / STEPS:20.2f}"
              f"  {1e6 * busy / STEPS:15.2f}  {first:.4f}, {last:.4f}", flush=True)


if __name__ == "__main__":
    main()
