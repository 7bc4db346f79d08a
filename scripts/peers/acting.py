#!/usr/bin/env python3
"""Acts from Python, with the protocol of trainer.py:

    acting.py many RUN AGENTS STEPS       rounds of STEPS turns of AGENTS agents, as
                                          crates/agents/benches/acting.rs takes them
    acting.py overtone RUN STEPS          rounds of STEPS steps of one HalfCheetah-v5 in the plain
    acting.py d3rlpy CONTEXT STEPS        loop of Gymnasium, with an agent of Overtone or d3rlpy
"""

import logging
import sys
import time

WARM_UP = 30


def rounds(step, steps):
    """Takes `steps` steps for each input line, until the input ends."""
    for _ in range(WARM_UP):
        step()
    print(0, flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        for _ in range(steps):
            step()
        print((time.perf_counter() - start) / steps, flush=True)
    # Memory is not compared.
    print(0, flush=True)


def many(run, agents):
    """A turn of all agents."""
    import numpy as np
    import overtone as ov

    policy = ov.load(run).policy(1000, n_agents=agents)
    # HalfCheetah's 17 numbers; their values do not change the time.
    seen = np.sin(np.arange(agents * 17, dtype=np.float32)).reshape(agents, 17)
    rewards = np.ones(agents)
    return lambda: policy.act(seen, rewards)


def gymnasium_loop(actor):
    """A step of the plain loop of Gymnasium."""
    import gymnasium

    environment = gymnasium.make("HalfCheetah-v5")
    observation, _ = environment.reset(seed=1)
    reward = 0.0

    def step():
        nonlocal observation, reward
        action = actor.predict(observation, reward)
        observation, reward, ended, cut, _ = environment.step(action)
        if ended or cut:
            observation, _ = environment.reset()
            actor.reset()
            reward = 0.0

    return step


def overtone_actor(run):
    import overtone as ov

    return ov.load(run).policy(12000, deterministic=True).as_d3rlpy()


def d3rlpy_actor(context):
    """d3rlpy's agent of the same sizes, in the acting mode of its documentation."""
    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    from d3rlpy.algos import DecisionTransformerConfig
    from d3rlpy.models import VectorEncoderFactory

    config = DecisionTransformerConfig(
        context_size=context, max_timestep=1000, num_heads=1, num_layers=3,
        encoder_factory=VectorEncoderFactory([128], exclude_last_activation=True))
    algorithm = config.create(device="cpu:0")
    algorithm.create_impl((17,), 6)
    return algorithm.as_stateful_wrapper(target_return=12000)


def main():
    what, *words, steps = sys.argv[1:]
    if what == "many":
        step = many(words[0], int(words[1]))
    elif what == "overtone":
        step = gymnasium_loop(overtone_actor(words[0]))
    else:
        step = gymnasium_loop(d3rlpy_actor(int(words[0])))
    rounds(step, int(steps))


if __name__ == "__main__":
    main()
