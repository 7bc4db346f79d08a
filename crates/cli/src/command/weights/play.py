"""Plays the agent in this directory by onnxruntime and numpy: `python play.py Hopper-v4 10`.
In a program: agent = Agent(directory), agent.begin(seed), agent.act(observation, last_reward)."""
import json, sys
from pathlib import Path
import numpy as np, onnxruntime

TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(uint8)": np.uint8}


class Agent:
    def __init__(self, folder):
        self.about = json.loads((Path(folder) / "agent.json").read_text())
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(Path(folder) / "agent.onnx"), options)
        self.n, self.inputs = None, {each.name: each for each in self.session.get_inputs()}

    def begin(self, seed=0, target=None):
        left = np.float32(self.about["target_return"] if target is None else target)
        self.check("target", left)
        self.random, self.n, self.left, self.planned = np.random.default_rng(seed), 0, left, []
        self.window = {k: np.zeros(each.shape, TYPES[each.type]) for k, each in self.inputs.items()}

    def act(self, observation, reward=0.0, action_mask=None):  # a call that fails changes nothing
        if self.n is None:  # steps of the episode
            raise ValueError("begin() starts an episode; call it before act()")
        seen = self.inputs["observations"]
        with np.errstate(over="ignore", invalid="ignore"):
            row = np.reshape(observation, seen.shape[1:]).astype(TYPES[seen.type])
        self.check("observation", row, row.dtype != np.uint8 or np.array_equal(row, observation))
        self.check("reward", reward)
        got = 0.0 if self.n == 0 or self.about["delayed_reward"] else reward
        left = self.left - np.float32(np.clip(got, -1, 1) if self.about["clip_rewards"] else got)
        self.check("return-to-go", left)
        window = {k: np.roll(rows, -1, axis=0) for k, rows in self.window.items()}
        for name, rows in window.items():
            rows[-1] = dict(observations=row, returns_to_go=left, timesteps=self.n, mask=1).get(name, 0)
        outputs = self.planned or list(  # the rest of a chunk of actions, or a new one
            self.session.run(None, window)[0].reshape(self.about.get("chunk_size", 1), -1))
        self.check("output of the agent", outputs)
        action = self.choose(outputs[0], action_mask)
        self.window, self.left, self.n, self.planned = window, left, self.n + 1, outputs[1:]
        self.took(action)
        return action

    def took(self, action):  # for an action that differs from the agent's
        if not self.n:
            raise ValueError("act() chooses an action; call it before took()")
        space = self.about["actions"]
        fits = np.shape(action) == np.shape(space.get("low", 0))
        if "low" in space:  # a far larger number would overflow at every step that sees it
            bounds = np.abs(np.array([space["low"], space["high"]], np.float64))
            largest = 1e6 * np.where(bounds < 1e30, bounds, 1).max(axis=0, initial=1)
            fits = fits and np.all(np.abs(action) <= largest)
        else:
            fits = fits and action in range(len(space["names"]))
        self.check("action", action, fits)
        if "actions" in self.window:
            self.window["actions"][-1] = action

    def check(self, name, numbers, fits=True):
        if not (fits and np.isfinite(numbers).all()):
            raise ValueError(f"{name}: {numbers} is not finite, or does not fit the agent")

    def choose(self, output, mask=None):  # mask: 1 for each allowed action, else 0
        is_list = "logits" in self.about["outputs"]
        if mask is not None or "needs_action_mask" in self.about:
            self.check("action_mask", mask, is_list and np.shape(mask) == output.shape and np.any(mask))
            output = np.where(mask, output, -np.inf)
        if self.about["choice"] == "mode" or self.random.random() < self.about["greedy"]:
            return int(output.argmax()) if is_list else output
        scaled = np.exp((output - output.max()).astype(np.float64) / self.about["temperature"])
        return int(self.random.choice(len(output), p=scaled / scaled.sum()))


if __name__ == "__main__":
    import gymnasium
    sys.argv[1:] or sys.exit("Name an environment: python play.py Hopper-v4 [EPISODES]")
    agent, env = Agent(Path(__file__).parent), gymnasium.make(sys.argv[1])
    shape = () if "logits" in agent.about["outputs"] else (len(agent.about["actions"]["low"]),)
    is_other = env.action_space.shape != shape or getattr(env.action_space, "start", 0)
    if is_other or len(env.observation_space.shape or ()) != 1:
        sys.exit("play.py plays vectors with one action, or indices from 0: use its class Agent")
    for episode in range(int(sys.argv[2]) if len(sys.argv) > 2 else 10):
        (seen, info), reward, total, over = env.reset(seed=episode), 0.0, 0.0, False
        agent.begin(seed=episode)
        while not over:
            seen, reward, ended, cut, info = env.step(agent.act(seen, reward, info.get("action_mask")))
            total, over = total + reward, ended or cut
        print(f"episode {episode}: return {total:.1f}")
