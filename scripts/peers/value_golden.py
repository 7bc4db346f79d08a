"""Generates golden files: a few steps of value-based algorithms in PyTorch, in double precision.

    python scripts/peers/value_golden.py crates/agents/tests/golden

Written from the papers' equations, not from their code: TD3+BC (Fujimoto & Gu 2021), IQL (Kostrikov
et al. 2022), ReBRAC (Tarasov et al. 2023), conservative Q-learning (Kumar et al. 2020) on quantiles
(Dabney et al. 2018). Each file holds the initial parameters, a batch and noise for each of 20 steps,
the losses of all steps, the gradients of the first step, and the final networks. Weights are
`[in, out]` and have the names of our checkpoints.
"""

import json
import struct
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

OBSERVATION, ACTION, WIDTH, BATCH, STEPS = 11, 3, 32, 16, 20
LIST, QUANTILES = 5, 7
GAMMA, RATE, LEARNING_RATE = 0.99, 0.05, 3e-3


class Mlp(nn.Module):
    """ReLU layers, each followed by a layer norm if `norms`."""

    def __init__(self, inputs, outputs, n_layers=2, norms=False):
        super().__init__()
        widths = [inputs] + [WIDTH] * n_layers + [outputs]
        self.layers = nn.ModuleList(nn.Linear(i, o) for i, o in zip(widths, widths[1:]))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(n_layers if norms else 0))
        for norm in self.norms:  # not the defaults, so that an error shows
            nn.init.uniform_(norm.weight, 0.5, 1.5)
            nn.init.uniform_(norm.bias, -0.3, 0.3)

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if i + 1 < len(self.layers):
                x = F.relu(x)
                if self.norms:
                    x = self.norms[i](x)
        return x


class Twin(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.first = Mlp(OBSERVATION + ACTION, 1, **options)
        self.second = Mlp(OBSERVATION + ACTION, 1, **options)

    def forward(self, observations, actions):
        both = torch.cat([observations, actions], 1)
        return self.first(both), self.second(both)

    def smaller(self, observations, actions):
        return torch.minimum(*self(observations, actions))


class Gaussian(nn.Module):
    """Actions with the tanh of a network as mean, and one deviation for all observations."""

    def __init__(self):
        super().__init__()
        self.mean = Mlp(OBSERVATION, ACTION)
        self.log_std = nn.Parameter(0.3 * torch.randn(ACTION))


def parameters(module):
    """Name and tensor of every parameter, and whether it is a linear layer's weight."""
    for name, tensor in module.named_parameters():
        yield name, tensor, tensor.dim() == 2


def copied(modules, what=lambda tensor: tensor.detach()):
    found = {}
    for part, module in modules.items():
        for name, tensor, turned in parameters(module):
            value = what(tensor)
            if value is not None:
                found[f"{part}.{name}"] = (value.T if turned else value).clone()
    return found


def copy_of(module, like):
    module.load_state_dict(like.state_dict())
    return module


def follow(target, online, rate):
    with torch.no_grad():
        for old, new in zip(target.parameters(), online.parameters()):
            old += rate * (new - old)


def adam(*modules):
    return torch.optim.Adam([p for m in modules for p in m.parameters()], lr=LEARNING_RATE)


def descend(loss, optimizer):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def batches(discrete=False):
    n = (STEPS, BATCH)
    draw = {
        "observations": torch.randn(*n, OBSERVATION),
        "actions": torch.rand(*n, ACTION) * 2 - 1,
        "rewards": torch.randn(*n, 1),
        "goes_on": (torch.rand(*n, 1) < 0.8).double(),
        "next_observations": torch.randn(*n, OBSERVATION),
        "next_actions": torch.rand(*n, ACTION) * 2 - 1,
    }
    if discrete:
        draw["actions"] = torch.randint(LIST, (*n, 1)).double()
        del draw["next_actions"]
    else:
        draw["noise"] = 0.3 * torch.randn(*n, ACTION)  # some beyond the clip
    return draw


def next_actions(actor, b, clip):
    return (torch.tanh(actor(b["next_observations"])) + b["noise"].clamp(-clip, clip)).clamp(-1, 1)


def actor_critic(critic_loss, actor_loss, **sizes):
    """TD3's order: critics at every step, the actor and then the targets at every second."""
    actor_sizes = {**sizes, "norms": False}
    actor, critics = Mlp(OBSERVATION, ACTION, **actor_sizes), Twin(**sizes)
    target_actor = copy_of(Mlp(OBSERVATION, ACTION, **actor_sizes), actor)
    target_critics = copy_of(Twin(**sizes), critics)
    all_of = {"actor": actor, "critics": critics, "target_actor": target_actor,
              "target_critics": target_critics}
    trained = {"actor": actor, "critics": critics}
    drawn, initial = batches(), copied(all_of)
    critic_optimizer, actor_optimizer = adam(critics), adam(actor)
    gradients, losses = {}, {"critic": [], "actor": []}
    for step in range(STEPS):
        b = {name: values[step] for name, values in drawn.items()}
        loss = critic_loss(b, critics, target_actor, target_critics)
        losses["critic"].append(loss.item())
        if step == 0:  # the actor's too, with the critics before their step
            loss.backward(retain_graph=True)
            gradients |= copied({"critics": critics}, lambda tensor: tensor.grad)
            actor_loss(b, actor, critics).backward()
            gradients |= copied({"actor": actor}, lambda tensor: tensor.grad)
            for module in trained.values():
                module.zero_grad()
        descend(loss, critic_optimizer)
        loss = actor_loss(b, actor, critics)
        losses["actor"].append(loss.item())
        if step % 2 == 1:
            descend(loss, actor_optimizer)
            follow(target_actor, actor, RATE)
            follow(target_critics, critics, RATE)
    return drawn, initial, gradients, losses, copied(all_of)


def td3_bc(alpha=2.5, clip=0.5):
    def critic_loss(b, critics, target_actor, target_critics):
        with torch.no_grad():
            actions = next_actions(target_actor, b, clip)
            value = target_critics.smaller(b["next_observations"], actions)
            target = b["rewards"] + GAMMA * b["goes_on"] * value
        return sum(F.mse_loss(q, target) for q in critics(b["observations"], b["actions"]))

    def actor_loss(b, actor, critics):
        actions = torch.tanh(actor(b["observations"]))
        value, _ = critics(b["observations"], actions)
        weight = alpha / value.abs().mean().detach()
        return -weight * value.mean() + F.mse_loss(actions, b["actions"])

    return actor_critic(critic_loss, actor_loss)


def rebrac(actor_beta=0.03, critic_beta=0.02, clip=0.5):
    def critic_loss(b, critics, target_actor, target_critics):
        with torch.no_grad():
            actions = next_actions(target_actor, b, clip)
            away = ((actions - b["next_actions"]) ** 2).sum(1, keepdim=True)
            value = target_critics.smaller(b["next_observations"], actions) - critic_beta * away
            target = b["rewards"] + GAMMA * b["goes_on"] * value
        return sum(F.mse_loss(q, target) for q in critics(b["observations"], b["actions"]))

    def actor_loss(b, actor, critics):
        actions = torch.tanh(actor(b["observations"]))
        value = critics.smaller(b["observations"], actions)
        away = ((actions - b["actions"]) ** 2).sum(1)
        return actor_beta * away.mean() - value.mean() / value.abs().mean().detach()

    return actor_critic(critic_loss, actor_loss, n_layers=3, norms=True)


def implicit(actor, trained, followed, recorded_value, critic_loss_of, likelihood, discrete=False,
             beta=3.0, expectile=0.7, largest=100.0):
    """IQL: `trained` are the networks that learn values, `followed` is the one of them with a target.
    `recorded_value` computes the value of a batch's actions, `likelihood` their logarithms."""
    value = trained["value"]
    target = copy_of(type(followed[1])(*followed[2:]), followed[1])
    all_of = {"actor": actor, **trained, f"target_{followed[0]}": target}
    drawn, initial = batches(discrete), copied(all_of)
    optimizer, actor_optimizer = adam(*trained.values()), adam(actor)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(actor_optimizer, STEPS)
    gradients, losses = {}, {"value": [], "critic": [], "actor": []}
    for step in range(STEPS):
        b = {name: values[step] for name, values in drawn.items()}
        with torch.no_grad():
            q = recorded_value(b, target)
        advantage = q - value(b["observations"])
        weight = torch.abs(expectile - (advantage < 0).double())
        value_loss = (weight.detach() * advantage ** 2).mean()
        critic_loss = critic_loss_of(b)
        weight = (beta * advantage.detach()).exp().clamp(max=largest)
        actor_loss = -(weight * likelihood(b)).mean()
        for name, loss in (("value", value_loss), ("critic", critic_loss), ("actor", actor_loss)):
            losses[name].append(loss.item())
        optimizer.zero_grad()
        actor_optimizer.zero_grad()
        (value_loss + critic_loss + actor_loss).backward()
        if step == 0:
            gradients = copied({"actor": actor, **trained}, lambda tensor: tensor.grad)
        optimizer.step()
        actor_optimizer.step()
        schedule.step()
        follow(target, followed[1], RATE)
    return drawn, initial, gradients, losses, copied(all_of)


def returns(b, value):
    return b["rewards"] + GAMMA * b["goes_on"] * value(b["next_observations"])


def with_critics(actor, critics, value, likelihood, **options):
    def critic_loss(b):
        with torch.no_grad():
            target = returns(b, value)
        return sum(F.mse_loss(q, target) for q in critics(b["observations"], b["actions"])) / 2

    def recorded_value(b, target):
        return target.smaller(b["observations"], b["actions"])

    return implicit(actor, {"critics": critics, "value": value}, ("critics", critics),
                    recorded_value, critic_loss, likelihood, **options)


def gaussian_likelihood(actor, b):
    mean = torch.tanh(actor.mean(b["observations"]))
    normal = torch.distributions.Normal(mean, actor.log_std.clamp(-20, 2).exp())
    return normal.log_prob(b["actions"]).sum(1, keepdim=True)


def iql():
    actor, critics, value = Gaussian(), Twin(), Mlp(OBSERVATION, 1)
    return with_critics(actor, critics, value, lambda b: gaussian_likelihood(actor, b))


def iql_in_chunks():
    """Without critics: the action's value is the one that followed it."""
    actor, value = Gaussian(), Mlp(OBSERVATION, 1)
    return implicit(actor, {"value": value}, ("value", value, OBSERVATION, 1), returns,
                    lambda b: torch.zeros(()), lambda b: gaussian_likelihood(actor, b))


class Outputs(nn.Module):
    """Two hidden layers, then one number for each output."""

    def __init__(self, outputs):
        super().__init__()
        self.body = nn.ModuleList([nn.Linear(OBSERVATION, WIDTH), nn.Linear(WIDTH, WIDTH)])
        self.out = nn.Linear(WIDTH, outputs)

    def forward(self, x):
        for layer in self.body:
            x = F.relu(layer(x))
        return self.out(x)


class Categorical(nn.Module):
    """Probabilities of discrete actions by a linear head without bias."""

    def __init__(self):
        super().__init__()
        self.body = nn.ModuleList([nn.Linear(OBSERVATION, WIDTH), nn.Linear(WIDTH, WIDTH)])
        self.head = nn.Linear(WIDTH, LIST, bias=False)

    forward = lambda self, x: self.head(F.relu(self.body[1](F.relu(self.body[0](x)))))


class DiscreteTwin(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Outputs(LIST), Outputs(LIST)

    def forward(self, observations, actions):
        return tuple(critic(observations).gather(1, actions.long())
                     for critic in (self.first, self.second))

    def smaller(self, observations, actions):
        return torch.minimum(*self(observations, actions))


def iql_discrete():
    actor, critics, value = Categorical(), DiscreteTwin(), Outputs(1)

    def likelihood(b):
        return actor(b["observations"]).log_softmax(1).gather(1, b["actions"].long())

    return with_critics(actor, critics, value, likelihood, discrete=True)


class Quantiles(nn.Module):
    """The network of vectors: two hidden layers, then quantiles of every action."""

    def __init__(self):
        super().__init__()
        self.body = nn.ModuleList([nn.Linear(OBSERVATION, WIDTH), nn.Linear(WIDTH, WIDTH)])
        self.out = nn.Linear(WIDTH, LIST * QUANTILES)

    def forward(self, x):
        for layer in self.body:
            x = F.relu(layer(x))
        return self.out(x).view(-1, LIST, QUANTILES)


def discrete_cql(alpha=4.0, target_every=6):
    online = Quantiles()
    target = copy_of(Quantiles(), online)
    drawn, initial = batches(discrete=True), copied({"online": online})
    optimizer = adam(online)
    gradients, losses = {}, {"td": [], "conservative": []}
    places = (torch.arange(QUANTILES) + 0.5) / QUANTILES
    rows = torch.arange(BATCH)
    for step in range(STEPS):
        b = {name: values[step] for name, values in drawn.items()}
        actions = b["actions"].long()[:, 0]
        with torch.no_grad():
            best = online(b["next_observations"]).mean(2).argmax(1)
            following = target(b["next_observations"])[rows, best]
            returns = b["rewards"] + GAMMA * b["goes_on"] * following
        quantiles = online(b["observations"])
        own, values = quantiles[rows, actions], quantiles.mean(2)
        error = returns[:, None, :] - own[:, :, None]
        huber = F.huber_loss(own[:, :, None].expand_as(error),
                             returns[:, None, :].expand_as(error), reduction="none")
        slope = (places[None, :, None] - (error.detach() < 0).double()).abs()
        td = (slope * huber).mean(2).sum(1).mean()
        conservative = (values.logsumexp(1) - values[rows, actions]).mean()
        losses["td"].append(td.item())
        losses["conservative"].append(conservative.item())
        optimizer.zero_grad()
        (td + alpha * conservative).backward()
        if step == 0:
            gradients = copied({"online": online}, lambda tensor: tensor.grad)
        optimizer.step()
        if (step + 1) % target_every == 0:
            copy_of(target, online)
    return drawn, initial, gradients, losses, copied({"online": online, "target": target})


def save(path, tensors):
    """safetensors: the header's length, the header, the numbers."""
    header, data = {}, b""
    for name, tensor in sorted(tensors.items()):
        numbers = tensor.detach().double().contiguous().numpy().tobytes()
        header[name] = {"dtype": "F64", "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(numbers)]}
        data += numbers
    header = json.dumps(header, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)


def main():
    torch.set_default_dtype(torch.float64)
    folder = Path(sys.argv[1])
    algorithms = (td3_bc, iql, rebrac, discrete_cql, iql_discrete, iql_in_chunks)
    for seed, algorithm in enumerate(algorithms):
        torch.manual_seed(seed)
        drawn, initial, gradients, losses, final = algorithm()
        tensors = {f"batch/{name}": values for name, values in drawn.items()}
        tensors |= {f"initial/{name}": values for name, values in initial.items()}
        tensors |= {f"gradient/{name}": values for name, values in gradients.items()}
        tensors |= {f"loss/{name}": torch.tensor(values) for name, values in losses.items()}
        tensors |= {f"final/{name}": values for name, values in final.items()}
        save(folder / f"{algorithm.__name__}.safetensors", tensors)


if __name__ == "__main__":
    main()
