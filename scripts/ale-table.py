#!/usr/bin/env python3
"""Prints envs/ale/tasks.toml: all playable games of the installed ale-py.

    .venv/bin/python scripts/ale-table.py > envs/ale/tasks.toml

Names, titles, hashes and action sets come from the emulator. The scores come from the literature and
are listed below. A test compares the table with the emulator (envs/ale/tests/table.rs).
"""

import json
import re
from pathlib import Path

import ale_py
import gymnasium

# The emulator has no rules for these games, and loading one ends the process (`UNPLAYABLE` in
# envs/ale/src/game.rs).
UNPLAYABLE = {"combat", "joust", "maze_craze", "warlords"}

# The games of the papers, which come first in messages and documentation.
FIRST = ["seaquest", "gravitar", "bank_heist", "double_dunk", "breakout"]

# Targets of the Decision Transformer's released evaluation, in raw points (code of Chen et al. 2021).
RELEASED_TARGETS = {"breakout": 90, "seaquest": 1150, "qbert": 14000, "pong": 20}

# Scores of random play and of a professional games tester in the 57 games of Wang et al. 2016,
# with no-op starts, as DeepMind's dqn_zoo publishes them (dqn_zoo/atari_data.py). Seaquest is
# rounded (68.4 and 42054.7 there): that reproduces the Fourier-head paper's table.
SCORES = {
    "alien": (227.8, 7127.7),
    "amidar": (5.8, 1719.5),
    "assault": (222.4, 742.0),
    "asterix": (210.0, 8503.3),
    "asteroids": (719.1, 47388.7),
    "atlantis": (12850.0, 29028.1),
    "bank_heist": (14.2, 753.1),
    "battle_zone": (2360.0, 37187.5),
    "beam_rider": (363.9, 16926.5),
    "berzerk": (123.7, 2630.4),
    "bowling": (23.1, 160.7),
    "boxing": (0.1, 12.1),
    "breakout": (1.7, 30.5),
    "centipede": (2090.9, 12017.0),
    "chopper_command": (811.0, 7387.8),
    "crazy_climber": (10780.5, 35829.4),
    "defender": (2874.5, 18688.9),
    "demon_attack": (152.1, 1971.0),
    "double_dunk": (-18.6, -16.4),
    "enduro": (0.0, 860.5),
    "fishing_derby": (-91.7, -38.7),
    "freeway": (0.0, 29.6),
    "frostbite": (65.2, 4334.7),
    "gopher": (257.6, 2412.5),
    "gravitar": (173.0, 3351.4),
    "hero": (1027.0, 30826.4),
    "ice_hockey": (-11.2, 0.9),
    "jamesbond": (29.0, 302.8),
    "kangaroo": (52.0, 3035.0),
    "krull": (1598.0, 2665.5),
    "kung_fu_master": (258.5, 22736.3),
    "montezuma_revenge": (0.0, 4753.3),
    "ms_pacman": (307.3, 6951.6),
    "name_this_game": (2292.3, 8049.0),
    "phoenix": (761.4, 7242.6),
    "pitfall": (-229.4, 6463.7),
    "pong": (-20.7, 14.6),
    "private_eye": (24.9, 69571.3),
    "qbert": (163.9, 13455.0),
    "riverraid": (1338.5, 17118.0),
    "road_runner": (11.5, 7845.0),
    "robotank": (2.2, 11.9),
    "seaquest": (68.0, 42055.0),
    "skiing": (-17098.1, -4336.9),
    "solaris": (1236.3, 12326.7),
    "space_invaders": (148.0, 1668.7),
    "star_gunner": (664.0, 10250.0),
    "surround": (-10.0, 6.5),
    "tennis": (-23.8, -8.3),
    "time_pilot": (3568.0, 5229.2),
    "tutankham": (11.4, 167.6),
    "up_n_down": (533.4, 11693.2),
    "venture": (0.0, 1187.5),
    "video_pinball": (16256.9, 17667.9),
    "wizard_of_wor": (563.5, 4756.5),
    "yars_revenge": (3092.9, 54576.9),
    "zaxxon": (32.5, 9173.3),
}

HEAD = """\
# All games of ale-py 0.12.1 except combat, joust, maze_craze and warlords, which end the process when
# loaded. `scripts/ale-table.py` prints this file. To add a game, add an entry with its emulator name,
# its display name (also the directory name of its data), the MD5 of ale-py's ROM (`roms/md5.json` of
# the package), and the names of its minimal action set in the emulator's order, unless it has all 18
# actions.
#
# reference: the scores that become 0 and 100; absent if the convention does not include the game.
# released_target: target of the Decision Transformer's released evaluation, in raw points.

[conventions]
# No-op starts; numbers from DeepMind's dqn_zoo (dqn_zoo/atari_data.py), with Seaquest rounded to
# 68 and 42055: reproduces the Fourier-head paper's table.
wang2016 = "random 0, human 100, scores of Wang et al. 2016"
"""


def titles() -> dict[str, str]:
    """The display name of each game that ale-py registers, such as `BankHeist`."""
    gymnasium.register_envs(ale_py)
    found = {}
    for spec in gymnasium.registry.values():
        title = re.fullmatch(r"ALE/(\w+)-v5", spec.id)
        if title:
            found[spec.kwargs["game"]] = title[1]
    return found


def actions(rom: Path) -> list[str]:
    """The names of a game's minimal action set."""
    emulator = ale_py.ALEInterface()
    emulator.loadROM(rom)
    return [action.name for action in emulator.getMinimalActionSet()]


def main() -> None:
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    roms = Path(ale_py.__file__).parent / "roms"
    hashes = {name[:-4]: md5 for name, md5 in json.loads((roms / "md5.json").read_text()).items()}
    known = titles()
    games = FIRST + sorted(set(hashes) - UNPLAYABLE - set(FIRST))
    print(HEAD, end="")
    for name in games:
        print(f'\n[[task]]\nname = "{name}"\ntitle = "{known[name]}"\nrom_md5 = "{hashes[name]}"')
        minimal = actions(roms / f"{name}.bin")
        if len(minimal) < 18:
            print("actions = " + json.dumps(minimal))
        if name in SCORES:
            low, high = SCORES[name]
            print(f'reference = {{ convention = "wang2016", low = {low}, high = {high} }}')
        if name in RELEASED_TARGETS:
            print(f"released_target = {RELEASED_TARGETS[name]}")


if __name__ == "__main__":
    main()
