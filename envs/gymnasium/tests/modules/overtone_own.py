"""Test environments: all spaces, and all kinds of failures."""

import gymnasium
import numpy
from gymnasium import spaces


class Own(gymnasium.Env):
    """Observes the result of `see` at each step; ends after `length` steps."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}
    observation_space = spaces.Box(-numpy.inf, numpy.inf, (2,))
    action_space = spaces.Discrete(3)
    length = 5

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.see(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.time += 1
        self.action = action
        return self.see(), float(self.time), self.time == self.length, False, {}

    def see(self):
        return numpy.float32([self.time, self.np_random.random()])

    def render(self):
        return numpy.full((6, 8, 3), (10 * self.time, 0, 255), numpy.uint8)


class Raising(Own):
    """Raises for action 2 at the step `at`."""

    def __init__(self, at=2, **options):
        super().__init__(**options)
        self.at = at

    def step(self, action):
        if self.time == self.at and action == 2:
            raise RuntimeError(f"the motor\nbroke at {self.time}")
        return super().step(action)


class Masked(Own):
    """Allows one action at each step, and says so in a form of info selected by `form`."""

    def __init__(self, form="action_mask", **options):
        super().__init__(**options)
        self.form = form

    def info(self):
        place = self.time % 3
        flags = numpy.arange(3) == place
        forms = {
            "action_mask": {"action_mask": flags.astype(numpy.int8)},
            "admissible_actions": {"admissible_actions": [place]},
            "flags": {"admissible_actions": flags},
            "wrong": {"action_mask": numpy.ones(4)},
        }
        return forms[self.form]

    def reset(self, **options):
        return super().reset(**options)[0], self.info()

    def step(self, action):
        assert action == self.time % 3, f"{action} is not allowed"
        return *super().step(action)[:4], self.info()


class NotFinite(Own):
    def see(self):
        seen = super().see()
        if self.time == 2:
            seen[1] = numpy.nan
        return seen


class Pays(Own):
    """Returns a reward of another type or shape, selected by `kind`."""

    KINDS = {
        "array": lambda: numpy.array([1.5]),
        "scalar": lambda: numpy.float32(1.5),
        "several": lambda: numpy.array([1.0, 2.0]),
        "none": lambda: None,
        "text": lambda: "1.5",
        "nan": lambda: numpy.nan,
        "list": lambda: [[1.0], [2.0, 3.0]],
    }

    def __init__(self, kind, **options):
        super().__init__(**options)
        self.kind = kind

    def step(self, action):
        seen, _, terminated, truncated, info = super().step(action)
        return seen, self.KINDS[self.kind](), terminated, truncated, info


class Answers(Own):
    """Returns an invalid result of `step`, selected by `kind`."""

    def __init__(self, kind, **options):
        super().__init__(**options)
        self.kind = kind

    def step(self, action):
        seen, reward, terminated, truncated, info = super().step(action)
        return {
            "four": (seen, reward, terminated, info),
            "six": (seen, reward, terminated, truncated, info, 0),
            "one": seen,
            "none": None,
            "arrays": (seen, reward, numpy.array([terminated]), numpy.array(truncated), info),
            "two_flags": (seen, reward, numpy.array([True, False]), truncated, info),
            "info_first": (seen, reward, terminated, info, truncated),
            "text": ("seen", reward, terminated, truncated, info),
            "no_array": (None, reward, terminated, truncated, info),
        }[self.kind]


class Solving(Own):
    """Ends after 3 steps; its `info` has a success of the kind `kind`."""

    length = 3
    KINDS = {
        "always": lambda ends: {"success": True},
        "at_end": lambda ends: {"success": ends},
        "number": lambda ends: {"is_success": numpy.float32(ends)},
        "array": lambda ends: {"success": numpy.array([1.0])},
        "lost": lambda ends: {"success": not ends},
        "both": lambda ends: {"is_success": False, "success": True},
        "second": lambda ends: {"is_success": True, "success": {"cube": False}},
        "never": lambda ends: {},
        "parts": lambda ends: {"success": {"cube": True}},
        "fraction": lambda ends: {"success": 0.5},
        "no_dict": lambda ends: None,
    }

    def __init__(self, kind, **options):
        super().__init__(**options)
        self.kind = kind

    def step(self, action):
        seen, reward, terminated, truncated, _ = super().step(action)
        return seen, reward, terminated, truncated, self.KINDS[self.kind](terminated)


class BadReward(Own):
    def step(self, action):
        seen, _, terminated, truncated, info = super().step(action)
        return seen, numpy.inf, terminated, truncated, info


class StickyNan(Own):
    """Returns NaN rewards after action 2, also in later episodes."""

    def __init__(self, **options):
        super().__init__(**options)
        self.total = 0.0

    def step(self, action):
        seen, _, *rest = super().step(action)
        if action == 2:
            self.total = numpy.nan
        return seen, self.total, *rest


class Exiting(Own):
    def step(self, action):
        raise SystemExit(3)


class OneWide(Own):
    """Observes three numbers although its space has two."""

    def see(self):
        return numpy.zeros((3,), numpy.float32)


class OneShort(Own):
    """Observes one number although its space has more."""

    KINDS = {
        "numbers": spaces.Box(-1, 1, (2,)),
        "square": spaces.Box(-1, 1, (2, 2)),
        "bits": spaces.MultiBinary(2),
        "places": spaces.MultiDiscrete([2, 3]),
        "part": spaces.Dict({"a": spaces.Box(-1, 1, (2,))}),
    }

    def __init__(self, kind, **options):
        super().__init__(**options)
        self.observation_space = self.KINDS[kind]

    def see(self):
        one = numpy.zeros((1,), numpy.float32)
        return {"a": one} if isinstance(self.observation_space, spaces.Dict) else one


class OldReset(Own):
    """`reset` returns only the observation, like Gym before 0.26."""

    def reset(self, **options):
        return super().reset(**options)[0]


class Bare(Own):
    """Observes its one number without an axis."""

    observation_space = spaces.Box(0, 9, (1,))

    def see(self):
        return self.time


class AllSpaces(Own):
    """A Dict of all kinds of spaces, unsorted; actions with two parts."""

    observation_space = spaces.Dict(
        {
            "z": spaces.Discrete(3, start=5),
            "a": spaces.Box(-1, 1, (2, 2), dtype=numpy.float64),
            "m": spaces.Tuple([spaces.MultiBinary(2), spaces.MultiDiscrete([2, 3])]),
        }
    )
    action_space = spaces.MultiDiscrete([2, 3], start=[0, 10])

    def see(self):
        return {
            "a": numpy.array([[0.25, 0.5], [0.75, 1.0]]),
            "m": (numpy.array([1, 0], numpy.int8), numpy.array([1, 2])),
            "z": 6,
        }

    def step(self, action):
        seen, _, *rest = super().step(action)
        return seen, 100.0 * action[0] + action[1], *rest


class Greedy(Own):
    """Changes its actions in place."""

    action_space = spaces.MultiDiscrete([2, 3])

    def step(self, action):
        seen, _, *rest = super().step(action)
        reward = 100.0 * action[0] + action[1]
        action += 1
        return seen, reward, *rest


class Started(Own):
    """Actions that start at -1."""

    action_space = spaces.Discrete(3, start=-1)

    def step(self, action):
        seen, _, *rest = super().step(action)
        return seen, float(action), *rest


class Bounded(Own):
    """A square of continuous actions, each with its own bounds."""

    action_space = spaces.Box(
        numpy.array([[-2, 0], [-1, -numpy.inf]]), numpy.array([[2, 4], [1, numpy.inf]]), dtype=float
    )

    def step(self, action):
        assert action.shape == (2, 2) and action.dtype == float
        seen, _, *rest = super().step(action)
        return seen, float(action.sum()), *rest


class Tight(Own):
    """Bounds that 32 bits round outwards."""

    action_space = spaces.Box(-0.1, 0.1, (2,), numpy.float64)


class Painted(Own):
    """Colour images."""

    observation_space = spaces.Box(0, 255, (96, 96, 3), numpy.uint8)

    def see(self):
        image = numpy.zeros((96, 96, 3), numpy.uint8)
        image[:, :48, 0] = 200
        image[10:40, 50:, 1] = 40 * self.time
        return image


class Unlit(Own):
    def render(self):
        if self.time == 1:
            raise RuntimeError("the window\nis gone")
        return super().render()


class Licensed(Own):
    """At most two instances can be open."""

    free = 2

    def __init__(self, **options):
        super().__init__(**options)
        if Licensed.free == 0:
            raise RuntimeError("no licence is left")
        Licensed.free -= 1

    def close(self):
        Licensed.free += 1


class Worded(Own):
    observation_space = spaces.Text(5)


class Mixed(Own):
    """An image and a number."""

    observation_space = spaces.Dict(
        {"image": spaces.Box(0, 255, (8, 8), numpy.uint8), "speed": spaces.Box(0, 1, (1,))}
    )


class Ordered(Own):
    action_space = spaces.Dict({"a": spaces.Discrete(2)})


class Whole(Own):
    action_space = spaces.Box(0, 5, (2,), numpy.int64)


class Listed(Own):
    action_space = spaces.Discrete(65536)


def endless(length=1000):
    """A function that returns an environment, without a registered id."""
    env = Own()
    env.length = length
    return env


def limited():
    """An environment with its own limit."""
    return gymnasium.make("CartPole-v1", max_episode_steps=7)


def capped():
    """An environment with its own limit, but without a specification."""
    return gymnasium.wrappers.TimeLimit(Own(), 3)


NAMES = "Own Raising NotFinite BadReward StickyNan Exiting OneWide OneShort OldReset Bare \
AllSpaces Greedy Started Bounded Tight Painted Unlit Licensed Worded Mixed Ordered Whole Listed Pays Answers \
Masked Solving"
for name in NAMES.split():
    id = f"Overtone{name}-v0"
    if id not in gymnasium.registry:
        gymnasium.register(id, entry_point=f"overtone_own:{name}", max_episode_steps=4)


def number():
    """A function that does not return an environment."""
    return 3
