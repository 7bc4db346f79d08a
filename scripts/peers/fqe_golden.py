"""Generates golden files: a few steps of fitted Q-evaluation in PyTorch and in the library d3rlpy.

    python scripts/peers/fqe_golden.py crates/judge/tests/golden

`own_*` are in double precision, written from the equation (Le et al. 2019): one network with an
output for each policy, targets that are clipped and follow at every step, weights of rows.
`d3rlpy_*` are d3rlpy 2.8.1's `FQE` and `DiscreteFQE` in single precision: one policy, a target that
is copied at steps 0, 6, 12 and 18, Huber's loss for discrete actions. Each file holds the initial
parameters, a batch for each of 20 steps, the losses, and the final networks; `own_*` also the
gradients of the first step.
"""

import sys
from pathlib import Path
from types import SimpleNamespace

import torch
import value_golden
from value_golden import Mlp, adam, copied, descend, follow, save

OBSERVATION, ACTION, WIDTH, BATCH, STEPS = 5, 3, 16, 12, 20
POLICIES, COPY_EVERY = 4, 6
GAMMA, RATE, LEARNING_RATE = 0.97, 0.05, 3e-3
LOW, HIGH = -1.5, 1.2
value_golden.WIDTH = WIDTH


def batches(discrete, policies):
    n = (STEPS, BATCH)
    if discrete:
        actions = torch.randint(ACTION, (*n, 1)).to(torch.get_default_dtype())
        next_policies = torch.softmax(2 * torch.randn(*n, policies, ACTION), 3)
    else:
        actions = torch.rand(*n, ACTION) * 2 - 1
        next_policies = torch.rand(*n, policies, ACTION) * 2 - 1
    return {
        "observations": torch.randn(*n, OBSERVATION),
        "actions": actions,
        "rewards": torch.randn(*n, 1),
        "continues": (torch.rand(*n, 1) < 0.8).to(torch.get_default_dtype()),
        "next_observations": torch.randn(*n, OBSERVATION),
        "next_policies": next_policies.flatten(2),
        "weights": torch.poisson(torch.ones(*n, 1)),
    }


def own(discrete):
    widths = (OBSERVATION, POLICIES * ACTION) if discrete else (OBSERVATION + ACTION, POLICIES)
    online, target = Mlp(*widths, norms=True), Mlp(*widths, norms=True)
    networks = {"online": online, "target": target}
    drawn, initial = batches(discrete, POLICIES), copied(networks)
    optimizer, losses, gradients = adam(online), [], {}
    for step in range(STEPS):
        b = {name: values[step] for name, values in drawn.items()}
        policies = b["next_policies"].view(BATCH, POLICIES, ACTION)
        loss = 0
        for m in range(POLICIES):
            if discrete:
                outputs = slice(m * ACTION, (m + 1) * ACTION)
                following = (policies[:, m] * target(b["next_observations"])[:, outputs]).sum(1)
                taken = b["actions"].long()
                value = online(b["observations"])[:, outputs].gather(1, taken)[:, 0]
            else:
                following = target(torch.cat([b["next_observations"], policies[:, m]], 1))[:, m]
                value = online(torch.cat([b["observations"], b["actions"]], 1))[:, m]
            aim = b["rewards"][:, 0] + GAMMA * b["continues"][:, 0] * following
            aim = aim.detach().clamp(LOW, HIGH)
            loss = loss + (b["weights"][:, 0] * (value - aim) ** 2).mean()
        losses.append(loss.item())
        descend(loss, optimizer)
        if step == 0:
            gradients = copied({"online": online}, lambda tensor: tensor.grad)
        follow(target, online, RATE)
    return drawn, initial, gradients, losses, copied(networks)


def d3rlpy(discrete):
    from d3rlpy.models import VectorEncoderFactory
    from d3rlpy.ope import FQE, DiscreteFQE, FQEConfig

    config = FQEConfig(
        learning_rate=LEARNING_RATE, batch_size=BATCH, gamma=GAMMA,
        target_update_interval=COPY_EVERY,
        encoder_factory=VectorEncoderFactory([WIDTH, WIDTH], use_layer_norm=True))
    drawn = batches(discrete, 1)
    if discrete:  # its policies are deterministic
        best = drawn["next_policies"].argmax(2)
        drawn["next_policies"] = torch.nn.functional.one_hot(best, ACTION).float()
    drawn["weights"] = torch.ones_like(drawn["weights"])
    policy = SimpleNamespace()
    algorithm = (DiscreteFQE if discrete else FQE)(SimpleNamespace(impl=policy), config)
    algorithm.create_impl((OBSERVATION,), ACTION)
    modules = algorithm.impl.modules

    def networks():
        named = {}
        for part, functions in (("online", modules.q_funcs), ("target", modules.targ_q_funcs)):
            linear1, _, norm1, linear2, _, norm2 = functions[0].encoder._layers
            own_names = torch.nn.Module()
            own_names.layers = torch.nn.ModuleList([linear1, linear2, functions[0]._fc])
            own_names.norms = torch.nn.ModuleList([norm1, norm2])
            named[part] = own_names
        return copied(named)

    initial, losses = networks(), []
    for step in range(STEPS):
        b = {name: values[step] for name, values in drawn.items()}
        actions = b["next_policies"].argmax(1) if discrete else b["next_policies"]
        policy.predict_best_action = lambda observations: actions
        batch = SimpleNamespace(terminals=1 - b["continues"], intervals=torch.ones(BATCH, 1), **b)
        losses.append(algorithm.impl.inner_update(batch, step)["loss"])
    return drawn, initial, {}, losses, networks()


def main():
    folder = Path(sys.argv[1])
    programs = (("own", own, torch.float64), ("d3rlpy", d3rlpy, torch.float32))
    for seed, (name, program, dtype) in enumerate(programs):
        for kind in ("continuous", "discrete"):
            torch.set_default_dtype(dtype)
            torch.manual_seed(seed)
            drawn, initial, gradients, losses, final = program(kind == "discrete")
            tensors = {f"batch/{name}": values for name, values in drawn.items()}
            tensors |= {f"initial/{name}": values for name, values in initial.items()}
            tensors |= {f"gradient/{name}": values for name, values in gradients.items()}
            tensors |= {"loss": torch.tensor(losses)}
            tensors |= {f"final/{name}": values for name, values in final.items()}
            save(folder / f"{name}_{kind}.safetensors", tensors)


if __name__ == "__main__":
    main()
