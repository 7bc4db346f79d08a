"""A training step of the library d3rlpy: its `update` on a given batch.

It has the sizes of Overtone's presets. These differences remain:
    atari  a context has the position of its last step; gradients are clipped at 1.0 here, and not
           by default; norms have another epsilon
    gym    the same transformer; its loss is a sum over action dimensions
Their cost was not measured; the matrix products are the same. `update` takes frames as 32-bit floats
and copies the batch, as in d3rlpy's own training.
"""

import logging


def step_of(preset, batch):
    """A function that takes one training step."""
    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    import atari_dt
    import gym_dt
    import numpy as np
    from d3rlpy.algos import DecisionTransformerConfig, DiscreteDecisionTransformerConfig
    from d3rlpy.dataset import TrajectoryMiniBatch
    from d3rlpy.models import PixelEncoderFactory, VectorEncoderFactory
    from d3rlpy.optimizers import AdamWFactory, GPTAdamWFactory
    from d3rlpy.preprocessing import PixelObservationScaler

    if preset == "atari":
        config = DiscreteDecisionTransformerConfig(
            batch_size=batch, context_size=atari_dt.CONTEXT, max_timestep=4000, num_heads=8,
            num_layers=6, learning_rate=6e-4,
            encoder_factory=PixelEncoderFactory(feature_size=atari_dt.WIDTH,
                                                last_activation="tanh"),
            optim_factory=GPTAdamWFactory(betas=(0.9, 0.95), weight_decay=0.1, clip_grad_norm=1.0),
            observation_scaler=PixelObservationScaler())
        frames, actions, returns, _ = atari_dt.random_batch(batch)
        observations, actions = frames.numpy(), actions.numpy()[..., None]
        timesteps = np.tile(np.arange(9, 9 + atari_dt.CONTEXT), (batch, 1))
        shape, n_actions = (4, 84, 84), atari_dt.ACTIONS
    else:
        config = DecisionTransformerConfig(
            batch_size=batch, context_size=gym_dt.CONTEXT, max_timestep=gym_dt.HORIZON,
            num_heads=1, num_layers=3,
            encoder_factory=VectorEncoderFactory([gym_dt.WIDTH], exclude_last_activation=True),
            optim_factory=AdamWFactory(weight_decay=1e-4, clip_grad_norm=1.0))
        observations, actions, returns, timesteps, _ = (x.numpy()
                                                        for x in gym_dt.random_batch(batch))
        shape, n_actions = (gym_dt.OBSERVATION,), gym_dt.ACTION
    algorithm = config.create(device="cpu:0")
    algorithm.create_impl(shape, n_actions)
    numbers = dict(observations=observations, actions=actions, timesteps=timesteps,
                   returns_to_go=returns.reshape(batch, -1, 1), masks=np.ones(timesteps.shape))
    numbers = {name: np.ascontiguousarray(array, np.float32) for name, array in numbers.items()}
    nothing = np.zeros(numbers["returns_to_go"].shape, np.float32)
    data = TrajectoryMiniBatch(rewards=nothing, terminals=nothing, length=timesteps.shape[1],
                               **numbers)
    modules = algorithm.impl.modules.transformer
    n_parameters = sum(parameter.numel() for parameter in modules.parameters())

    def step():
        algorithm.update(data)

    step.n_parameters = n_parameters
    return step
