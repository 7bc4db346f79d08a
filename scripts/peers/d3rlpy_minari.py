"""Opens a dataset that `overtone record` wrote with Minari and with d3rlpy's `get_minari`.

    pip install d3rlpy==2.8.1 minari==0.5.4 h5py 'gymnasium==1.4.0'
    overtone record task=gymnasium/CartPole-v1 transitions=500 to=minari:mine/cartpole-v0
    python d3rlpy_minari.py mine/cartpole-v0

Checks that the environment repeats each episode bit for bit from its seed and actions, and that both
packages give the same actions. Prints the shift of d3rlpy's observations in rows. In d3rlpy 2.8.1 it
is the number of earlier episodes, because an episode has T + 1 observations and T actions.
"""

import sys

import d3rlpy
import h5py
import minari
import numpy as np

name = sys.argv[1]
recorded = minari.load_dataset(name)
episodes = list(recorded.iterate_episodes())
env = recorded.recover_environment()
with h5py.File(recorded.storage.data_path / "main_data.hdf5") as file:
    seeds = [int(file[f"episode_{episode.id}"].attrs["seed"]) for episode in episodes]
for episode, seed in zip(episodes, seeds):
    seen, _ = env.reset(seed=seed)
    assert np.array_equal(seen, episode.observations[0])
    for time, action in enumerate(episode.actions):
        seen, reward, terminated, truncated, _ = env.step(action)
        assert np.array_equal(seen, episode.observations[time + 1])
        assert np.float32(reward) == np.float32(episode.rewards[time])
        assert (terminated, truncated) == (episode.terminations[time], episode.truncations[time])
print(f"minari {minari.__version__}: {len(episodes)} episodes, each repeated bit for bit")

theirs, _ = d3rlpy.datasets.get_minari(name)
assert len(theirs.episodes) == len(episodes)
joined = np.concatenate([episode.observations for episode in episodes])
first, shifts = 0, []
for mine, other in zip(episodes, theirs.episodes):
    assert np.array_equal(np.ravel(mine.actions), np.ravel(other.actions))
    at = [row for row in range(first + 1) if np.array_equal(joined[row], other.observations[0])]
    shifts.append(first - at[-1])
    first += len(mine.observations)
print(f"d3rlpy {d3rlpy.__version__}: the same actions; observations are rows too early by {shifts}")
