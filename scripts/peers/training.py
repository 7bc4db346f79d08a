"""Training steps: Overtone, and PyTorch in every form that might be the fastest."""

import subprocess
import sys

import check_models
from process import cell, ratios, start, summary, table, take_turns

# (preset, batch): steps in a round.
WORK = {("atari", 16): 2, ("atari", 64): 1, ("gym", 64): 6}
# Programs of PyTorch that are alive at once: each may keep 2 GB.
GROUP = 5
SIZES = {"atari": "30 timesteps, 6 layers, 8 heads, width 128, 18 actions",
         "gym": "20 timesteps, 3 layers, 1 head, width 128, HalfCheetah's sizes"}
OURS = "overtone"
# The words are trainer.py's.
EAGER, PUBLISHED = "eager", "published"
SINGLE = {
    "atari": [PUBLISHED, EAGER, "channels_last+fused", "channels_last+sdpa+fused",
              "fused+compile", "channels_last+fused+compile",
              "channels_last+sdpa+fused+compile"],
    "gym": [PUBLISHED, EAGER, "sdpa+fused", "fused+compile", "sdpa+fused+compile"],
}
REDUCED = {
    "atari": ["medium+channels_last+fused", "bf16+channels_last+fused",
              "bf16+channels_last+fused+compile"],
    "gym": ["bf16+fused", "bf16+fused+compile"],
}
LIBRARY = "d3rlpy"
# Prints the most kilobytes that PyTorch alone had in memory.
IMPORT = "import torch, resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"


def operations(preset: str, batch: int) -> float:
    """Floating-point operations that the matrix products and convolutions of one step need: two
    for each multiplication, and three products (forward, gradients of inputs and of weights) for
    each layer but the first, whose input needs no gradient. A query is multiplied with half of
    the keys, those that it sees."""
    if preset == "atari":
        conv = [20 * 20 * 32 * 4 * 64, 9 * 9 * 64 * 32 * 16, 7 * 7 * 64 * 64 * 9, 3136 * 128]
        steps, layers, width = 30, 6, 128
        encoder = steps * (2 * conv[0] + 3 * sum(conv[1:]))
    else:
        steps, layers, width, encoder = 20, 3, 128, 20 * 2 * (17 + 6 + 1) * 128
    tokens = 3 * steps
    block = tokens * 12 * width * width + tokens * tokens * width
    return 2.0 * batch * (encoder + 3 * layers * block)


def measure(bench: str, python: str, trainer: str, log, environment, rounds: int, threads: int):
    """Every model of WORK; a section of the results."""
    imported = subprocess.run([python, "-c", IMPORT], check=True, stdout=subprocess.PIPE, stderr=log)
    section = {"threads": threads, "rounds": rounds, "models": {}, "work": [],
               "import_mb": int(imported.stdout) * 1024 / 1e6}
    for preset in SIZES:
        section["models"][preset] = check_models.check(bench, preset)
        print(f"{preset}: PyTorch's model is Overtone's: {section['models'][preset]}",
              file=sys.stderr)

    print("products of matrices", file=sys.stderr)
    peers = start({OURS: [bench, "multiply", "24"],
                   "PyTorch": [python, trainer, "-", "1", "multiply", "24"]}, log, environment)
    disturbed = take_turns(peers, rounds)
    section["multiply"] = {peer.name: summary([2 * 1024**3 / t / 1e9 for t in peer.times])
                           for peer in peers}
    section["multiply_disturbed"] = disturbed

    for (preset, batch), steps in WORK.items():
        variants = SINGLE[preset] + REDUCED[preset] + [LIBRARY]
        commands = {OURS: [bench, "train", preset, str(batch), "plain", str(steps)]}
        for variant in variants:
            commands[variant] = [python, trainer, preset, str(batch), variant, str(steps)]
        rows, own_times, own_peak, disturbed = [], [], 0.0, 0
        while variants:
            group, variants = variants[:GROUP], variants[GROUP:]
            print(f"{preset}, batch {batch}: starting {', '.join(group)}", file=sys.stderr)
            peers = start({name: commands[name] for name in [OURS, *group]}, log, environment)
            disturbed += take_turns(peers, rounds)
            ours, *others = peers
            own_times += ours.times
            own_peak = max(own_peak, ours.peak_mb)
            rows += [{"name": peer.name, "seconds": summary(peer.times),
                      "ratio": ratios(peer.times, ours.times), "peak_mb": peer.peak_mb}
                     for peer in others]
        own = {"name": OURS, "seconds": summary(own_times), "peak_mb": own_peak}
        section["work"].append({
            "preset": preset, "batch": batch, "steps_a_round": steps, "disturbed": disturbed,
            "giga_operations": operations(preset, batch) / 1e9, "rows": [own, *rows]})
    return section


def answer(section: dict) -> str:
    """The page's answer: the first work that was timed."""
    first = section["work"][0]
    _, published, _, best, *_ = in_short(first)
    return (f"A training step of the {first['preset']} model with {first['batch']} contexts is "
            f"{published} times as fast as the published PyTorch code, and {best} times as fast as "
            "the best 32-bit PyTorch.")


def markdown(section: dict) -> str:
    ceiling = max(row["largest"] for row in section["multiply"].values())
    text = "## A training step\n\n"
    text += table(["how many times faster Overtone's step is than", "as published", "eager",
                   "best in 32 bits", "best in fewer bits", "d3rlpy"],
                  [in_short(work) for work in section["work"]]) + "\n"
    text += (
        "A step is forward, backward, clipping and AdamW, with dropout, on a random batch in "
        f"memory. Every program has {section['threads']} threads, every row a process. In each of "
        f"{section['rounds']} rounds Overtone and {GROUP} of the others take turns. Milliseconds "
        "are medians (least–largest). *Ratio* is another program's time divided by Overtone's, the "
        "median of the rounds' ratios with their range. Before the timing, PyTorch's model must "
        "compute the same loss with Overtone's weights: ")
    text += "; ".join(
        f"{preset}: {model['parameters']:,} parameters in both, losses differ by "
        f"{model['largest_difference']:.0e}" for preset, model in section["models"].items())
    multiply = section["multiply"]
    text += (
        ".\n\n*Share* is the rate of a step's products and convolutions, divided by the machine's "
        "largest rate. That rate is for products of two 1024 × 1024 matrices of 32-bit floats: "
        + ", ".join(f"{cell(row)} GFLOP/s ({name})" for name, row in multiply.items())
        + ".\n\n")
    for work in section["work"]:
        rows, best = work["rows"], fastest(work, SINGLE)
        text += (f"**{work['preset']}**, {work['batch']} contexts of {SIZES[work['preset']]}; "
                 f"{work['giga_operations']:.0f} GFLOP a step"
                 + (f"; other programs ran during {work['disturbed']} of the rounds"
                    if work["disturbed"] else "") + "\n\n")
        lines = []
        for row in rows:
            name, seconds = row["name"], row["seconds"]
            share = work["giga_operations"] / seconds["median"] / ceiling
            label = describe(name) + (" (**best of PyTorch in 32 bits**)" if row is best else "")
            lines.append([label, cell(seconds, 1e3),
                          "" if name == OURS else cell(row["ratio"], 1, 2), f"{100 * share:.0f} %",
                          f"{row['peak_mb']:.0f}"])
        text += table(["", "ms a step", "ratio", "share", "peak memory, MB"], lines) + "\n"
    text += NOTES.format(import_mb=section["import_mb"])
    return text


def fastest(work: dict, names: dict[str, list[str]]) -> dict | None:
    """The row of those names with the smallest ratio: not all rows take turns with each other,
    but all do with Overtone."""
    rows = [row for row in work["rows"] if row["name"] in names[work["preset"]]]
    return min(rows, key=lambda row: row["ratio"]["median"], default=None)


def in_short(work: dict) -> list[str]:
    """A line of the first table."""
    by_name = {row["name"]: row for row in work["rows"]}
    chosen = [by_name.get(PUBLISHED), by_name.get(EAGER), fastest(work, SINGLE),
              fastest(work, REDUCED), by_name.get(LIBRARY)]
    return [f"{work['preset']}, batch {work['batch']}",
            *(cell(row["ratio"], 1, 2) if row else "not run" for row in chosen)]


def describe(name: str) -> str:
    if name == OURS:
        return "**Overtone**"
    if name == LIBRARY:
        return "d3rlpy, its own `update`"
    if name == PUBLISHED:
        return "PyTorch, as the published code"
    parts = name.split("+")
    precision = {"bf16": "**bfloat16** autocast: ", "medium": "**reduced products**: "}
    return "PyTorch, " + precision.get(parts[0], "") + ", ".join(
        part for part in parts if part not in precision)


NOTES = """\
- *As the published code* includes its extra copies and masks; *eager* is the same model without \
them. PyTorch stacks frames before the clock starts, Overtone inside the step.
- *sdpa* is `scaled_dot_product_attention`, *fused* AdamW in one pass, *compile* `torch.compile` of \
model and loss. *reduced products* is `set_float32_matmul_precision("medium")`. It and *bfloat16* \
have another precision than Overtone, so they are not a like-for-like comparison.
- *d3rlpy* has the same matrices, dropout and optimizer, and slightly other norms and positions. \
Its `update` copies the batch, as in its own training.
- *Peak memory* is the largest resident set; `import torch` alone takes {import_mb:.0f} MB.

"""
