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


def markdown(section: dict) -> str:
    ceiling = max(row["largest"] for row in section["multiply"].values())
    text = (
        "## A training step\n\n"
        "Forward, backward, clipping and AdamW, with dropout, on a random batch that is already in "
        f"memory; {section['threads']} threads on both sides, a process for each row, "
        f"{section['rounds']} rounds in which Overtone and {GROUP} of the others take turns. "
        "Milliseconds are medians with the least and the "
        "largest; *ratio* is how many times longer than Overtone's a step takes, the median of the "
        "rounds' own ratios, with their range: above 1, Overtone is faster.\n\n"
        "Before anything is timed, PyTorch's model gets Overtone's weights and must find "
        "Overtone's loss: ")
    text += "; ".join(
        f"{preset}: {model['parameters']:,} parameters on both sides, losses "
        f"{model['largest_difference']:.0e} apart" for preset, model in section["models"].items())
    multiply = section["multiply"]
    text += (
        ".\n\nThe most this machine does, products of two 1024 × 1024 matrices of 32-bit floats: "
        + ", ".join(f"{cell(row)} GFLOP/s ({name})" for name, row in multiply.items())
        + ". *Share* is the rate at which a step's own products and convolutions would have to run, "
        "if there were nothing else in it, as a share of the largest of these; the rows of another "
        "precision may exceed it.\n\n")
    text += table(["how many times faster Overtone's step is than", "as published", "eager",
                   "best in 32 bits", "best in fewer bits", "d3rlpy"],
                  [in_short(work) for work in section["work"]]) + "\n"
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
*As the published code*: its layers and its habits. The Atari program copies the global position \
table for every context of the batch; the Gym program adds the padding mask to the scores and \
picks real timesteps by index. *eager* is the same model without these. PyTorch's frames are \
stacked before the clock starts, and Overtone stacks inside the step. \
*sdpa* is `scaled_dot_product_attention`, *fused* AdamW in one pass, *compile* `torch.compile` of \
model and loss. *reduced products* is `set_float32_matmul_precision("medium")`: 32-bit matrices, \
multiplied in bfloat16. These and *bfloat16* are another precision than Overtone's and are no \
like-for-like comparison; they are here because a user could choose them.

*d3rlpy* is configured to the same sizes, dropout and optimizer. Its model differs a little (a \
block position per timestep instead of per token, another epsilon in its norms), not in its \
matrices. Its `update` copies the batch, frames as 32-bit floats, as it does in its own training.

*Peak memory* is the process's largest resident set; after `import torch` alone it is \
{import_mb:.0f} MB.

"""
