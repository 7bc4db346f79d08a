"""Runs a Gymnasium environment by commands, for this crate's tests and benches.

    gymnasium.py NAME N_ENVS

Reads one command per line and answers with a line of numbers that round-trip bit by bit. `play` is
for benches. With more than one environment only `reset` and `play` are available.
"""

import pathlib
import sys
import warnings

# This file's directory comes first on the path, and this file has the name of the package.
sys.path = [path for path in sys.path if path != str(pathlib.Path(__file__).resolve().parent)]

import gymnasium
import mujoco
import numpy as np

# Gymnasium warns that `-v4` is outdated, but it is the closest to D4RL's data.
warnings.filterwarnings("ignore")
gymnasium.logger.min_level = gymnasium.logger.ERROR
mujoco.set_mju_user_warning(lambda message: None)


class One:
    """A single environment."""

    def __init__(self, name):
        self.env = gymnasium.make(name, disable_env_checker=True)
        self.seed = 0

    def reset(self, seed):
        """The observation."""
        return self.env.reset(seed=int(seed))[0]

    def reset_to(self, *state):
        """Starts an episode in a given state instead of a random one."""
        self.env.reset(seed=0)
        robot = self.env.unwrapped
        mujoco.mj_resetData(robot.model, robot.data)
        state, n_positions = np.array(state, dtype=float), robot.model.nq
        robot.set_state(state[:n_positions], state[n_positions:])
        return robot._get_obs()

    def step(self, *action):
        """The observation, the reward, whether it terminated, whether it was truncated."""
        action = np.array(action, dtype=float).astype(np.float32)
        observation, reward, terminated, truncated, _ = self.env.step(action)
        return [*observation, reward, terminated, truncated]

    def capsules(self):
        """x and z of both ends, and radius, of each of the robot's limbs."""
        robot = self.env.unwrapped
        mujoco.mj_kinematics(robot.model, robot.data)
        numbers = []
        for i in range(robot.model.ngeom):
            if robot.model.geom_type[i] != mujoco.mjtGeom.mjGEOM_CAPSULE:
                continue
            radius, half = robot.model.geom_size[i][:2]
            along = half * robot.data.geom_xmat[i].reshape(3, 3)[:, 2]
            for end in (robot.data.geom_xpos[i] + along, robot.data.geom_xpos[i] - along):
                numbers += [end[0], end[2]]
            numbers.append(radius)
        return numbers

    def play(self, n_steps):
        """Takes uniform actions, with their resets."""
        for action in uniform(int(n_steps), self.env.action_space.shape):
            _, _, terminated, truncated, _ = self.env.step(action)
            if terminated or truncated:
                self.seed += 1
                self.env.reset(seed=self.seed)
        return []


class Many:
    """A batch that resets automatically, in a separate step."""

    def __init__(self, name, n_envs):
        make = lambda: gymnasium.make(name, disable_env_checker=True)
        self.env = gymnasium.vector.SyncVectorEnv([make] * n_envs)

    def reset(self, seed):
        self.env.reset(seed=int(seed))
        return []

    def play(self, n_steps):
        """Takes uniform actions in every environment."""
        for actions in uniform(int(n_steps), self.env.action_space.shape):
            self.env.step(actions)
        return []


def uniform(n_steps, shape):
    """Actions for `n_steps` steps."""
    draws = np.random.default_rng(0).random((n_steps, *shape), dtype=np.float32)
    return 2 * draws - 1


def main():
    name, n_envs = sys.argv[1], int(sys.argv[2])
    env = One(name) if n_envs == 1 else Many(name, n_envs)
    for line in sys.stdin:
        command, *arguments = line.split()
        answer = getattr(env, command)(*arguments)
        print(*(repr(float(number)) for number in answer), flush=True)


if __name__ == "__main__":
    main()
