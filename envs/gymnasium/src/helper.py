"""Gymnasium environments for the suite, stepped one after the other in this interpreter.

Observations are written to the rows of one array, which the suite copies. An exception fails only
its own environment and does not stop the others.
"""

import importlib
import json
import math
import os
import re
import sys
import threading
import traceback
from collections.abc import Mapping

import gymnasium
import numpy
from gymnasium import spaces


class Unsuitable(Exception):
    """An unsupported space."""


# Required attributes of an environment.
PARTS = ["reset", "step", "close", "observation_space", "action_space"]

# Environments import their modules when they are created. Two threads must not do this in parallel,
# because each would see partially imported modules of the other.
IMPORTING = threading.RLock()


# Names


def resolve(name):
    """Gymnasium's id for a name in any spelling, with or without version; otherwise all known ids.

    A module before a colon is imported first, so that it registers its environments.
    """
    module, colon, id = name.rpartition(":")
    if module:
        with IMPORTING:
            found_in = importlib.import_module(module)
        if id not in gymnasium.registry and callable(getattr(found_in, id, None)):
            return json.dumps({"name": name})
    known = list(gymnasium.registry)
    if id in known:
        return json.dumps({"name": name})
    same_spelling = [other for other in known if plain(other) == plain(id)]
    # A name without a version means the newest version.
    unversioned = [other for other in known if plain(other.rpartition("-v")[0]) == plain(id)]
    unversioned.sort(key=lambda other: gymnasium.registry[other].version or 0)
    for matching in (same_spelling, unversioned):
        if matching:
            return json.dumps({"name": module + colon + matching[-1]})
    return json.dumps({"known": (within(found_in) if module else []) or known})


def within(module):
    """The names available in a module: its callables, and its registered ids."""
    callables = [
        name
        for name, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", None) == module.__name__
    ]
    root = module.__name__.partition(".")[0]
    entries = ((id, str(spec.entry_point)) for id, spec in gymnasium.registry.items())
    return callables + [id for id, entry in entries if re.match(rf"{re.escape(root)}\b", entry)]


def plain(name):
    return re.sub(r"[\W_]", "", name).lower()


def make(name, options, max_steps):
    """Creates an environment. `max_steps` sets the limit of its episodes; 0 means no limit.

    Raises Unsuitable if the environment has another limit of its own.
    """
    with IMPORTING:
        env = create(name, options, max_steps)
    limit = step_limit(env)
    if max_steps is not None and limit != (max_steps or None):
        env.close()
        raise Unsuitable(
            f"it ends its episodes after {limit} actions, but max_episode_steps is "
            f"{max_steps or '0, no limit'}: remove the environment's own limit"
        )
    return env


def step_limit(env):
    """The limit of actions set by the wrappers of an environment; None without a limit."""
    limits = []
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, gymnasium.wrappers.TimeLimit):
            limits.append(env._max_episode_steps)
        env = env.env
    return min(limits, default=None)


def create(name, options, max_steps):
    module, _, id = name.rpartition(":")
    if module and id not in gymnasium.registry:
        function = getattr(importlib.import_module(module), id, None)
        if callable(function) and id not in gymnasium.registry:
            env = function(**options)
            lacks = [part for part in PARTS if not hasattr(env, part)]
            if lacks:
                kind = type(env).__name__
                raise Unsuitable(f"`{id}` of {module} returns a {kind}, which has no {lacks[0]}")
            if max_steps:
                env = gymnasium.wrappers.TimeLimit(env, max_episode_steps=max_steps)
            return env
    if max_steps is not None:
        options = {**options, "max_episode_steps": max_steps or -1}
    # The checker only warns in the first steps. This module checks the size of every observation.
    return gymnasium.make(name, disable_env_checker=True, **options)


# Spaces


def describe(name, options):
    """The spaces and other properties of an environment, as JSON."""
    env = make(name, options, None)
    try:
        spec = env.spec
        width, images = flat(env.observation_space, "observation")
        described = {
            "observations": {"kind": "vectors", "width": width},
            "actions": convert_actions(env.action_space)[0],
            "max_steps": step_limit(env),
            "render_modes": list(env.metadata.get("render_modes") or []),
            "fps": float(env.metadata.get("render_fps") or 30),
            "spec": spec_json(spec),
        }
        if images:
            described["observations"] = {"kind": "pixels", "shape": images}
        return json.dumps(described)
    finally:
        env.close()


def spec_json(spec):
    """The environment's specification as JSON; None if it cannot be serialized."""
    try:
        return spec.to_json() if spec else None
    except Exception:
        return None


def flat(space, path):
    """The number of values of an observation, and its shape if all of it is one image."""
    if isinstance(space, spaces.Box):
        if space.dtype == numpy.uint8 and 2 <= len(space.shape) <= 4:
            return math.prod(space.shape), list(space.shape)
        return math.prod(space.shape), None
    if isinstance(space, spaces.Discrete):
        return int(space.n), None
    if isinstance(space, spaces.MultiBinary):
        return math.prod(space.shape), None
    if isinstance(space, spaces.MultiDiscrete):
        return int(numpy.sum(space.nvec)), None
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        parts = [(flat(part, f"{path}.{key}"), f"{path}.{key}") for key, part in parts_of(space)]
        for (_, image), part in parts:
            if image and len(parts) > 1:
                raise Unsuitable(
                    f"its {part} is an image among other parts: select one of them with "
                    "gymnasium.wrappers.FilterObservation in your own environment"
                )
        return sum(width for (width, _), _ in parts), parts[0][0][1] if len(parts) == 1 else None
    raise Unsuitable(f"its {path} is a {type(space).__name__} space, which has no fixed size")


def parts_of(space):
    """The parts of a space with their names; the parts of a Dict are sorted by name."""
    if isinstance(space, spaces.Dict):
        return sorted(space.spaces.items())
    return list(enumerate(space.spaces))


def misshapen(value, row):
    """The exception for an observation whose shape differs from its row."""
    return ValueError(
        f"observed an array of shape {numpy.shape(value)}, its space has the shape {row.shape}"
    )


def numbers(row, value):
    """Writes an observation with one axis and the size of the row."""
    if type(value) is not numpy.ndarray:
        value = array(value)
    # Without this check, assignment would broadcast a single number.
    if value.shape != row.shape:
        raise misshapen(value, row)
    if value.dtype.kind not in "fiub":
        raise no_numbers(value)
    row[...] = value


def array(value):
    """An observation as an array of numbers."""
    try:
        value = numpy.asarray(value)
    except ValueError:
        raise TypeError(f"observed a {type(value).__name__} that is not an array") from None
    if value.dtype.kind not in "fiub":
        raise no_numbers(value)
    return value


def fitted(value, shape):
    """The flat values of an observation, checked against the size of its space."""
    value = array(value)
    if value.size != math.prod(shape):
        raise ValueError(
            f"observed an array of shape {value.shape}, its space has the shape {shape}"
        )
    return value.reshape(-1)


def no_numbers(value):
    """The exception for an observation that does not contain real numbers."""
    given = "None" if value.shape == () and value[()] is None else f"values of {value.dtype}"
    return TypeError(f"observed {given}, expected numbers")


def begun(answer):
    """The observation and the info in the result of `reset`."""
    # A bare observation, as in Gym's old `reset`, can also be a tuple of two parts.
    if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], dict):
        return answer
    if isinstance(answer, tuple):
        given = ", ".join(type(part).__name__ for part in answer)
        given = f"a tuple of {len(answer)} ({given})"
    else:
        given = f"1 value, a {type(answer).__name__}: Gym's form before 0.26"
    raise TypeError(f"reset returned {given}; expected a tuple of an observation and a dict")


FIVE = "expected observation, reward, terminated, truncated, info"


def stepped(answer):
    """The exception for a result of `step` without five values."""
    if not isinstance(answer, (tuple, list)):
        return TypeError(f"step returned a {type(answer).__name__}; {FIVE}")
    form = ": Gym's form before 0.26" if len(answer) == 4 else ""
    return TypeError(f"step returned {len(answer)} values{form}; {FIVE}")


def unpacked(error):
    """The exception for a result of `step` that one of Gymnasium's wrappers failed to unpack."""
    frames = traceback.extract_tb(error.__traceback__)
    wrappers = os.path.dirname(gymnasium.wrappers.__file__)
    if "unpack" not in str(error) or not frames[-1].filename.startswith(wrappers):
        return error
    if count := re.search(r"expected 5, got (\d+)", str(error)):
        return stepped((None,) * int(count[1]))
    if name := re.search(r"non-iterable (\w+) object", str(error)):
        return TypeError(f"step returned a {name[1]}; {FIVE}")
    return TypeError(f"step returned more than 5 values; {FIVE}")


def reward_of(reward):
    """A reward of any type as a float. An array with one number is also valid."""
    expected = "expected one number"
    if reward is None or isinstance(reward, (str, bytes, dict)):
        given = "None" if reward is None else f"a {type(reward).__name__}"
        raise TypeError(f"the reward is {given}; {expected}")
    try:
        value = numpy.asarray(reward)
    except ValueError:
        raise TypeError(f"the reward is a {type(reward).__name__}; {expected}") from None
    if value.size != 1:
        raise TypeError(f"the reward is an array of shape {value.shape}; {expected}")
    if value.dtype.kind not in "fiub":
        # Other numeric types, such as Decimal and Fraction.
        try:
            return float(value.reshape(-1)[0])
        except (TypeError, ValueError):
            kind = type(value.reshape(-1)[0]).__name__
            raise TypeError(f"the reward is a {kind}; {expected}") from None
    return float(value.reshape(-1)[0])


def flag(name, value):
    """The boolean value of a flag of any type."""
    try:
        held = numpy.asarray(value)
    except ValueError:
        held = numpy.asarray(None)
    if held.size != 1:
        raise TypeError(f"{name} is an array of shape {held.shape}; expected True or False")
    held = held.reshape(-1)[0]
    # A dict in place of `truncated` is an `info`, one position too early.
    if isinstance(held, (numpy.bool_, bool)) or held in (0, 1):
        return bool(held)
    raise TypeError(f"{name} is a {type(value).__name__} ({value!r:.40}); expected True or False")


def success_of(info):
    """`success` or `is_success` in an episode's last `info`; None if neither is a flag."""
    for name in ("success", "is_success"):
        try:
            return flag(name, info[name])
        except Exception:
            pass
    return None


def writer(space):
    """A function that writes an observation to a row, and raises if its size is wrong.

    None stands for `numbers`.
    """
    if isinstance(space, spaces.Box):
        # A single number can be observed without an axis.
        if len(space.shape) == 1 and space.shape != (1,):
            return None

        def box(row, value):
            value = fitted(value, space.shape)
            if row.dtype == numpy.uint8 and value.dtype != numpy.uint8:
                raise TypeError(f"observed an image of {value.dtype}, its space has uint8")
            row[:] = value

        return box
    if isinstance(space, spaces.Discrete):
        start, n = int(space.start), int(space.n)

        def one_hot(row, value):
            place = array(value)
            if place.size != 1:
                raise ValueError(f"observed an array of shape {place.shape}, expected one of {space}")
            index = int(place.reshape(-1)[0]) - start
            if not 0 <= index < n:
                raise ValueError(f"observed {value}, which is not in {space}")
            row[:] = 0
            row[index] = 1

        return one_hot
    if isinstance(space, spaces.MultiBinary):

        def bits(row, value):
            row[:] = fitted(value, space.shape)

        return bits
    if isinstance(space, spaces.MultiDiscrete):
        sizes = space.nvec.reshape(-1).astype(int)
        starts = numpy.asarray(space.start).reshape(-1).astype(int)
        offsets = numpy.concatenate([[0], numpy.cumsum(sizes)[:-1]])

        def one_hots(row, value):
            index = fitted(value, space.shape).astype(int) - starts
            if ((index < 0) | (index >= sizes)).any():
                raise ValueError(f"observed {value}, which is not in {space}")
            row[:] = 0
            row[offsets + index] = 1

        return one_hots
    pieces, at = [], 0
    for key, part in parts_of(space):
        width = flat(part, str(key))[0]
        pieces.append((key, slice(at, at + width), writer(part) or numbers))
        at += width

    def all_parts(row, value):
        if isinstance(space, spaces.Dict) and not isinstance(value, Mapping):
            raise TypeError(f"observed a {type(value).__name__}, its space is a Dict")
        if isinstance(space, spaces.Tuple) and not isinstance(value, (tuple, list)):
            raise TypeError(f"observed a {type(value).__name__}, its space is a Tuple")
        for key, place, write in pieces:
            try:
                part = value[key]
            except (KeyError, IndexError):
                raise ValueError(f"part {key!r} of the observation is missing") from None
            write(row[place], part)

    return all_parts


# Maximum number of combinations that become discrete actions.
MOST_COMBINATIONS = 4096

# Recordings number discrete actions with 16 bits, and 65535 is reserved.
MOST_ACTIONS = 65535


def discrete(names):
    return {"kind": "discrete", "names": names}


def bounds(side):
    """One side of continuous actions; infinity is a word, because JSON does not support it."""
    return [x if math.isfinite(x) else str(x) for x in side.tolist()]


def convert_actions(space):
    """A description of an environment's actions, and a function that converts ours to its own."""
    if isinstance(space, spaces.Discrete):
        if space.n > MOST_ACTIONS:
            raise Unsuitable(
                f"it has {space.n} discrete actions, but at most {MOST_ACTIONS} are supported"
            )
        actions = [numpy.int64(space.start + i) for i in range(int(space.n))]
        return discrete([str(action) for action in actions]), actions.__getitem__
    if isinstance(space, (spaces.MultiDiscrete, spaces.MultiBinary)):
        if isinstance(space, spaces.MultiBinary):
            sizes, starts = numpy.full(space.shape, 2), numpy.zeros(space.shape, int)
        else:
            sizes, starts = space.nvec, numpy.asarray(space.start)
        n = math.prod(int(size) for size in sizes.reshape(-1))
        if n > MOST_COMBINATIONS:
            raise Unsuitable(
                f"it has {n} combinations of actions, but at most {MOST_COMBINATIONS} are supported"
            )
        # The last component changes fastest.
        actions = numpy.stack(numpy.unravel_index(numpy.arange(n), sizes.reshape(-1)), axis=1)
        actions = (actions.reshape(n, *sizes.shape) + starts).astype(space.dtype)
        names = ["|".join(str(part) for part in action.reshape(-1)) for action in actions]
        # A copy, because an environment can change its action in place.
        return discrete(names), lambda index: actions[index].copy()
    if isinstance(space, spaces.Box):
        if not numpy.issubdtype(space.dtype, numpy.floating):
            raise Unsuitable(f"its actions are a Box of {space.dtype}, expected a floating-point type")
        low, high = (numpy.float32(side).reshape(-1) for side in (space.low, space.high))
        shape, dtype = space.shape, space.dtype

        def reshaped(values):
            # A 64-bit bound can be inside its rounded 32-bit value, and actions have 32 bits.
            return numpy.clip(values.reshape(shape), space.low, space.high).astype(dtype)

        plain = len(shape) == 1 and dtype == numpy.float32
        described = {"kind": "continuous", "low": bounds(low), "high": bounds(high)}
        return described, None if plain else reshaped
    raise Unsuitable(
        f"its actions are a {type(space).__name__} space, expected discrete or continuous actions"
    )


# Stepping

# Number of observations that are checked for rounding errors.
CHECKED = 2000


# Names of the allowed actions in an info.
MASKS = ("action_mask", "admissible_actions")


def allowed(info, n):
    """Flags of the allowed ones of `n` discrete actions; None if the info does not say.

    `admissible_actions` may also hold the indices of the allowed actions.
    """
    name = next((name for name in MASKS if info.get(name) is not None), None)
    if name is None:
        return None
    held = numpy.asarray(info[name])
    if name == "admissible_actions" and held.ndim == 1 and held.dtype != bool:
        held = numpy.isin(numpy.arange(n), held)
    if held.shape != (n,) or not numpy.isin(held, (0, 1)).all():
        raise ValueError(f"info[{name!r}]: expected 0 or 1 for each of {n} actions, got {held!r:.60}")
    return held.astype(bool)


class Rounded:
    """Writes 64-bit observations, and warns once if float32 makes successive values equal."""

    def __init__(self, write):
        self.write, self.left, self.last = write or numbers, CHECKED, {}
        self.changes = self.lost = 0

    def __call__(self, row, value):
        if self.left == 0:
            return self.write(row, value)
        self.left -= 1
        before, last = row.copy(), self.last.get(id(row))
        self.write(row, value)
        now = numpy.array(value).reshape(-1)
        self.last[id(row)] = now
        if last is None:
            return
        changed = now != last
        self.changes = self.changes + changed
        self.lost = self.lost + (changed & (row == before))
        worst = (self.lost >= 20) & (2 * self.lost > self.changes)
        if worst.any():
            place = int(worst.argmax())
            print(
                f"warning: observation, place {place}: float32 makes {self.lost[place]} of "
                f"{self.changes[place]} different successive values equal, such as {now[place]}; "
                "subtract a constant in the environment",
                file=sys.stderr,
                flush=True,
            )
            self.left = 0


class Batch:
    """Environments of one kind."""

    def __init__(self, name, options, max_steps, n, numbers):
        self.how = (name, options, max_steps)
        self.envs = []
        try:
            for _ in range(n):
                self.envs.append(make(*self.how))
        except BaseException:
            self.close()
            raise
        first = self.envs[0]
        width, image = flat(first.observation_space, "observation")
        self.write = writer(first.observation_space)
        described, self.decode = convert_actions(first.action_space)
        self.n_actions = len(described.get("names", []))
        # `[n, n_actions]`, the allowed actions, once an environment says which.
        self.masks = None
        is_image = image and not numbers
        space = first.observation_space
        if isinstance(space, spaces.Box) and space.dtype.itemsize > 2 and space.dtype != "float32":
            self.write = Rounded(self.write)
        self.rows = numpy.zeros((n, width), numpy.uint8 if is_image else numpy.float32)
        # Assigning to an existing row takes half the time of indexing the array first.
        self.row = list(self.rows)

    def reset(self, indices, seeds):
        """Starts episodes and returns failures by position in the call."""
        failures = []
        for position, index in enumerate(indices):
            try:
                if self.envs[index] is None:
                    self.envs[index] = make(*self.how)
                answer = self.envs[index].reset(seed=seeds[position])
                observation, info = begun(answer)
                self.show(index, observation)
                self.allow(index, info)
            except BaseException as error:
                self.give_up(index)
                failures.append((position, one_line(error)))
        return failures

    def show(self, index, observation):
        (self.write or numbers)(self.row[index], observation)

    def allow(self, index, info):
        """Notes the allowed actions of an environment."""
        flags = allowed(info, self.n_actions) if self.n_actions else None
        if flags is not None and self.masks is None:
            self.masks = numpy.ones((len(self.envs), self.n_actions), bool)
        if self.masks is not None:
            self.masks[index] = True if flags is None else flags

    def step(self, indices, actions):
        """Rewards, endings (0: none, 1: terminated, 2: truncated), successes and failures.

        Successes are those of ended episodes, by position in the call.
        """
        envs, row, write = self.envs, self.row, self.write
        rewards, endings, successes, failures = [], [], {}, []
        if self.decode is not None:
            actions = map(self.decode, actions)
        for index, action in zip(indices, actions):
            try:
                answer = envs[index].step(action)
                try:
                    observation, reward, terminated, truncated, info = answer
                except (TypeError, ValueError):
                    raise stepped(answer) from None
                if write is not None:
                    write(row[index], observation)
                else:
                    numbers(row[index], observation)
                if self.masks is not None:
                    self.allow(index, info)
                # Common types come first, because a step of a small environment takes a microsecond.
                kind = type(reward)
                if kind is not float and kind is not int and kind is not numpy.float64:
                    reward = reward_of(reward)
                if terminated is not True and terminated is not False:
                    terminated = flag("terminated", terminated)
                if truncated is not True and truncated is not False:
                    truncated = flag("truncated", truncated)
                rewards.append(float(reward))
                if terminated or truncated:
                    successes[len(endings)] = success_of(info)
                endings.append(1 if terminated else 2 if truncated else 0)
            except BaseException as error:
                del rewards[len(endings) :]
                failures.append((len(endings), one_line(unpacked(error))))
                rewards.append(0.0)
                endings.append(0)
                self.give_up(index)
        return rewards, endings, successes, failures

    def give_up(self, index):
        """Closes a failed environment, which is created again for its next episode. Idempotent."""
        env, self.envs[index] = self.envs[index], None
        try:
            if env is not None:
                env.close()
        except BaseException:
            pass

    def close(self):
        for index in range(len(self.envs)):
            self.give_up(index)


def one_line(error):
    """An exception on one line: its message and its position."""
    message = " ".join(str(error).split())
    frames = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in frames if frame.filename != "overtone_gymnasium.py"]
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {message}{where}" if message else type(error).__name__ + where


class Camera:
    """One environment with rendering."""

    def __init__(self, name, options, max_steps):
        if not any(os.environ.get(key) for key in ("DISPLAY", "WAYLAND_DISPLAY")):
            os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # Else pygame's library complains.
        self.env = make(name, {**options, "render_mode": "rgb_array"}, max_steps)
        self.decode = convert_actions(self.env.action_space)[1]

    def reset(self, seed):
        begun(self.env.reset(seed=seed))
        return self.picture()

    def step(self, action):
        self.env.step(action if self.decode is None else self.decode(action))
        return self.picture()

    def picture(self):
        return numpy.ascontiguousarray(self.env.render(), numpy.uint8)

    def close(self):
        self.env.close()
