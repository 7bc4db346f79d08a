"""Converts datasets of Minari and d3rlpy to Overtone, and compares the results.

    pip install 'minari[hdf5,arrow]==0.5.4' pillow d3rlpy==2.8.1 overtone_rl-*.whl
    python python_datasets.py

Minari: HDF5, Arrow and Parquet, with vectors, pictures (JPEG, as Minari writes them), Discrete and
Dict observations, and Discrete, MultiDiscrete and continuous actions. d3rlpy: discrete and continuous
actions. If Overtone also reads the file itself, both datasets must have the same hash.
"""

import importlib.util
import os
import tempfile
from importlib.metadata import version

import numpy as np

folder = tempfile.mkdtemp()
os.environ["MINARI_DATASETS_PATH"] = os.path.join(folder, "minari")
os.environ["XDG_CACHE_HOME"] = folder
os.chdir(folder)

import overtone as ov  # noqa: E402

rng = np.random.default_rng(0)
TINY = {
    "model": {"d_model": 16, "n_layers": 1, "context_length": 2},
    "train": {"updates": 2, "batch_size": 2},
    "evaluation.episodes": 0,
    "progress": "none",
}


def arrays(data):
    with np.load(data.path) as file:
        return dict(file)


def through_minari():
    import minari
    from gymnasium import spaces
    from minari.data_collector.episode_buffer import EpisodeBuffer

    inf = np.inf
    observed = {
        "vectors": (
            spaces.Box(-inf, inf, (3,), np.float32),
            lambda n: rng.normal(size=(n, 3)).astype(np.float32),
        ),
        "pictures": (
            spaces.Box(0, 255, (40, 48, 3), np.uint8),
            lambda n: rng.integers(0, 256, (n, 40, 48, 3), dtype=np.uint8),
        ),
        "numbered": (spaces.Discrete(5, start=2), lambda n: rng.integers(2, 7, n)),
        "parts": (
            spaces.Dict({"b": spaces.Box(-1, 1, (2,), np.float64), "a": spaces.Discrete(3)}),
            lambda n: {"a": rng.integers(0, 3, n), "b": rng.uniform(-1, 1, (n, 2))},
        ),
    }
    low, high = np.float32([-2, 0]), np.float32([2, 10])
    acted = {
        "list": (spaces.Discrete(4), lambda n: rng.integers(0, 4, n)),
        "several": (spaces.MultiDiscrete([2, 3]), lambda n: rng.integers(0, [2, 3], (n, 2))),
        "real": (
            spaces.Box(low, high),
            lambda n: rng.uniform(low, high, (n, 2)).astype(np.float32),
        ),
    }
    kinds = [("vectors", action) for action in acted]
    kinds += [(seen, "list") for seen in observed if seen != "vectors"]
    for form in ("hdf5", "arrow", "parquet"):
        for seen, action in kinds:
            buffers, (seen_space, show), (action_space, act) = [], observed[seen], acted[action]
            for number in range(4):
                n = 6 + number
                last = np.arange(n) == n - 1
                buffers.append(EpisodeBuffer(
                    id=number, observations=show(n + 1), actions=act(n),
                    rewards=list(rng.normal(size=n)), infos={},
                    terminations=list(last & (number % 2 == 0)),
                    truncations=list(last & (number % 2 == 1)),
                ))
            name = f"peers/{form}_{seen}_{action}-v0"
            minari.create_dataset_from_buffers(
                name, buffer=buffers, env=None, observation_space=seen_space,
                action_space=action_space, data_format=form,
            )
            theirs = minari.load_dataset(name)
            data = ov.from_minari(theirs)
            mine, episodes = arrays(data), list(theirs.iterate_episodes())
            assert len(data) == theirs.total_steps == sum(map(len, episodes))
            rewards = np.concatenate([episode.rewards for episode in episodes])
            assert np.array_equal(mine["rewards"], rewards.astype(np.float32))
            assert mine["terminals"].sum() == 2 and mine["timeouts"].sum() == 2
            actions = np.concatenate([episode.actions for episode in episodes])
            if action == "several":
                assert np.array_equal(mine["actions"], actions[:, 0] * 3 + actions[:, 1])
                assert mine["n_actions"] == 6
            elif action == "list":
                assert np.array_equal(mine["actions"], actions) and mine["n_actions"] == 4
            else:
                assert np.array_equal(mine["actions"], actions)
                assert np.array_equal(mine["action_low"], low)
                assert np.array_equal(mine["action_high"], high)
            if seen == "numbered":
                whole = np.concatenate([episode.observations[:-1] for episode in episodes])
                assert np.array_equal(mine["observations"], np.eye(5)[whole - 2])
            elif seen == "parts":
                a, b = (
                    np.concatenate([episode.observations[key][:-1] for episode in episodes])
                    for key in "ab"
                )
                whole = np.concatenate([np.eye(3)[a], b], axis=1)
                assert np.array_equal(mine["observations"], whole.astype(np.float32))
            else:
                whole = np.concatenate([episode.observations[:-1] for episode in episodes])
                assert np.array_equal(mine["observations"], whole)
            one_hash = "read by Minari only"
            if form == "hdf5" and seen != "pictures":
                own = ov.Dataset.open(theirs.storage.data_path)
                assert own.hash == data.hash, (own.hash, data.hash)
                one_hash = "same hash as Overtone's own reader"
            if form != "hdf5" and seen == "vectors":
                run = ov.train(data, run_dir=form + action, **TINY)
                run.policy(0.0).act(np.zeros((1, 3), np.float32))
                one_hash += ", trained without an environment"
            print(f"minari {minari.__version__} {form}: {seen}, {action}: {len(data)} steps, {one_hash}")


def through_d3rlpy():
    from d3rlpy.dataset import MDPDataset

    n = 40
    last = np.zeros(n, bool)
    last[[9, 24, 39]] = True
    ended = last.copy()
    ended[24] = False
    seen, rewards = rng.normal(size=(n, 3)).astype(np.float32), rng.normal(size=n)
    for kind, actions in (
        ("list", rng.integers(0, 3, n)),
        ("real", rng.uniform(-1, 1, (n, 2)).astype(np.float32)),
    ):
        buffer = MDPDataset(
            seen, actions if actions.ndim > 1 else actions[:, None], rewards.astype(np.float32),
            ended.astype(np.float32), (last & ~ended).astype(np.float32),
        )
        data = ov.from_d3rlpy(buffer)
        mine = arrays(data)
        assert np.array_equal(mine["observations"], seen)
        assert np.array_equal(mine["actions"], actions)
        assert np.array_equal(mine["terminals"], ended)
        assert np.array_equal(mine["timeouts"], last & ~ended)
        same = ov.from_arrays(seen, actions, rewards, ended, last & ~ended)
        with open(f"{kind}.h5", "w+b") as file:
            buffer.dump(file)
        hashes = {data.hash, same.hash, ov.Dataset.open(f"{kind}.h5").hash}
        assert len(hashes) == 1, hashes
        run = ov.train(data, run_dir="d3rlpy" + kind, **TINY)
        action = run.policy(0.0).as_d3rlpy().predict(seen[0], 0.0)
        print(f"d3rlpy {version('d3rlpy')}: {kind}: {len(data)} steps, the same hash as the arrays "
              f"and as its dump, trained without an environment, acts {np.asarray(action)}")


through_minari()
if importlib.util.find_spec("d3rlpy"):
    through_d3rlpy()
else:
    print("d3rlpy is not installed: skipped its buffers")
