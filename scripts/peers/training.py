"""Training steps of Overtone, and of PyTorch in each form that could be the fastest."""

import subprocess
import sys

import check_models
from process import cell, ratios, start, summary, table, take_turns

# (preset, batch): steps in a round.
WORK = {("atari", 16): 2, ("atari", 64): 1, ("gym", 64): 6}
# PyTorch programs that run at once; each may keep 2 GB.
GROUP = 5
SIZES = {"atari": "30 timesteps, 6 layers, 8 heads, width 128, 18 actions",
         "gym": "20 timesteps, 3 layers, 1 head, width 128, HalfCheetah's sizes"}
OURS = "overtone"
# Variants of trainer.py.
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
# Prints the peak memory of PyTorch alone in kilobytes.
IMPORT = "import torch, resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"


def operations(preset: str, batch: int) -> float:
    """Floating-point operations of the matrix products and convolutions of one step. Each
    multiplication counts as two. Each layer has three products (forward, gradients of inputs and
    weights); the first layer has two, because its input needs no gradient. A query sees half of
    the keys."""
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
    """Times each model of WORK; gives a section of the results."""
    imported = subprocess.run([python, "-c", IMPORT], check=True, stdout=subprocess.PIPE, stderr=log)
    section = {"threads": threads, "rounds": rounds, "models": {}, "work": [],
               "import_mb": int(imported.stdout) * 1024 / 1e6}
    for preset in SIZES:
        section["models"][preset] = check_models.check(bench, preset)
        print(f"{preset}: PyTorch's model agrees with Overtone's: {section['models'][preset]}",
              file=sys.stderr)

    print("matrix products", file=sys.stderr)
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
    rows, best = [], []
    for work in section["work"]:
        by_name = {row["name"]: row for row in work["rows"]}
        ours, published = by_name[OURS], by_name.get(PUBLISHED)
        share = work["giga_operations"] / ours["seconds"]["median"] / ceiling
        memory = f" / {published['peak_mb']:.0f}" if published else ""
        rows.append([*in_short(work), cell(ours["seconds"], 1e3), f"{100 * share:.0f} %",
                     f"{ours['peak_mb']:.0f}{memory}"])
        if winner := fastest(work, SINGLE):
            best.append(f"{work['preset']} {work['batch']}: {describe(winner['name'])}")
    losses = "; ".join(f"{preset} {model['largest_difference']:.0e}"
                       for preset, model in section["models"].items())
    return (table(["Overtone's speed divided by", "published code", "eager", "best in 32 bits",
                   "best in fewer bits", "d3rlpy", "Overtone, ms", "share of peak",
                   "peak MB: Overtone / published"], rows)
            + f"\nBest in 32 bits: {'; '.join(best)}. With Overtone's weights, the losses differ by: "
            f"{losses}. The machine's peak is {ceiling:.0f} GFLOP/s. {section['rounds']} rounds, "
            f"{section['threads']} threads.\n")


def fastest(work: dict, names: dict[str, list[str]]) -> dict | None:
    """The row of these names with the smallest ratio. Only ratios compare, because not all rows
    take turns with each other."""
    rows = [row for row in work["rows"] if row["name"] in names[work["preset"]]]
    return min(rows, key=lambda row: row["ratio"]["median"], default=None)


def in_short(work: dict) -> list[str]:
    """A row of the table."""
    by_name = {row["name"]: row for row in work["rows"]}
    chosen = [by_name.get(PUBLISHED), by_name.get(EAGER), fastest(work, SINGLE),
              fastest(work, REDUCED), by_name.get(LIBRARY)]
    return [f"{work['preset']}, batch {work['batch']}",
            *(cell(row["ratio"], 1, 2) if row else "not run" for row in chosen)]


def describe(name: str) -> str:
    return {PUBLISHED: "published code", LIBRARY: "d3rlpy"}.get(name, name.replace("+", ", "))
