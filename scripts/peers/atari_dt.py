"""The Atari Decision Transformer of Chen et al. (2021) in PyTorch, layer by layer.

Written from the description of the published model, with the sizes of Overtone's `atari`
preset. `check_models.py` compares its loss with Overtone's for the same weights and batch.

Options that change the speed and not the result:
    published      repeats the global position table for every context and gathers from it, as the
                   published code does; without this option, rows are indexed
    channels_last  the encoder's memory layout
    sdpa           torch.nn.functional.scaled_dot_product_attention
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

LAYERS, HEADS, WIDTH, CONTEXT, ACTIONS = 6, 8, 128, 30, 18
DROPOUT = 0.1


class Attention(nn.Module):
    def __init__(self, sdpa: bool):
        super().__init__()
        self.sdpa = sdpa
        self.query, self.key, self.value, self.projection = (
            nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.weight_dropout, self.output_dropout = nn.Dropout(DROPOUT), nn.Dropout(DROPOUT)
        tokens = 3 * CONTEXT
        mask = torch.ones(tokens, tokens, dtype=torch.bool).tril()
        self.register_buffer("visible", mask, persistent=False)

    def forward(self, x):
        batch, tokens, width = x.shape
        query, key, value = (
            layer(x).view(batch, tokens, HEADS, width // HEADS).transpose(1, 2)
            for layer in (self.query, self.key, self.value))
        if self.sdpa:
            dropout = DROPOUT if self.training else 0.0
            y = F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True)
        else:
            scores = query @ key.transpose(-2, -1) / math.sqrt(width // HEADS)
            scores = scores.masked_fill(~self.visible[:tokens, :tokens], float("-inf"))
            y = self.weight_dropout(scores.softmax(-1)) @ value
        y = y.transpose(1, 2).reshape(batch, tokens, width)
        return self.output_dropout(self.projection(y))


class Block(nn.Module):
    def __init__(self, sdpa: bool):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention(sdpa)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(),
                                 nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(DROPOUT))

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        return x + self.mlp(self.norm_2(x))


class DecisionTransformer(nn.Module):
    def __init__(self, max_timestep, published=False, channels_last=False, sdpa=False):
        super().__init__()
        self.published, self.channels_last = published, channels_last
        self.positions = nn.Parameter(torch.zeros(1, 3 * CONTEXT + 1, WIDTH))
        self.global_positions = nn.Parameter(torch.zeros(1, max_timestep + 1, WIDTH))
        self.dropout = nn.Dropout(DROPOUT)
        self.blocks = nn.Sequential(*(Block(sdpa) for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, ACTIONS, bias=False)
        self.action_embedding = nn.Embedding(ACTIONS, WIDTH)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, 0.0, 0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
        # These keep PyTorch's own initialisation, as in the published program.
        self.encoder = nn.Sequential(
            nn.Conv2d(4, 32, 8, stride=4), nn.ReLU(), nn.Conv2d(32, 64, 4, stride=2), nn.ReLU(),
            nn.Conv2d(64, 64, 3, stride=1), nn.ReLU(), nn.Flatten(), nn.Linear(3136, WIDTH),
            nn.Tanh())
        self.return_embedding = nn.Sequential(nn.Linear(1, WIDTH), nn.Tanh())
        if channels_last:
            self.encoder.to(memory_format=torch.channels_last)

    def logits(self, observations, actions, returns_to_go, timestep):
        """Logits at every observation token, [batch, time, actions].

        observations [batch, time, 4, 84, 84], 8-bit or already in [0, 1]; actions [batch, time],
        or one fewer while playing; returns_to_go [batch, time]; timestep [batch].
        """
        batch, time = returns_to_go.shape
        if observations.dtype == torch.uint8:
            observations = observations.float() / 255
        frames = observations.reshape(batch * time, 4, 84, 84)
        if self.channels_last:
            frames = frames.contiguous(memory_format=torch.channels_last)
        seen = self.encoder(frames).view(batch, time, WIDTH)
        target = self.return_embedding(returns_to_go[..., None])
        done = torch.tanh(self.action_embedding(actions))
        if actions.shape[1] < time:  # the newest action is still to be chosen
            done = F.pad(done, (0, 0, 0, 1))
        tokens = torch.stack([target, seen, done], 2).view(batch, 3 * time, WIDTH)
        if actions.shape[1] < time:
            tokens = tokens[:, :-1]
        if self.published:
            table = self.global_positions.repeat_interleave(batch, 0)
            at = timestep.view(batch, 1, 1).expand(batch, 1, WIDTH)
            position = table.gather(1, at)
        else:
            position = self.global_positions[0, timestep][:, None]
        x = tokens + position + self.positions[:, : tokens.shape[1]]
        return self.head(self.norm(self.blocks(self.dropout(x))))[:, 1::3]

    def loss(self, observations, actions, returns_to_go, timestep):
        logits = self.logits(observations, actions, returns_to_go, timestep)
        return F.cross_entropy(logits.reshape(-1, ACTIONS), actions.reshape(-1))


def optimizer(model, fused=False, learning_rate=6e-4):
    """AdamW that decays the matrices of linear layers and convolutions alone."""
    matrices = {id(module.weight) for module in model.modules()
                if isinstance(module, (nn.Linear, nn.Conv2d))}
    decayed = [p for p in model.parameters() if id(p) in matrices]
    kept = [p for p in model.parameters() if id(p) not in matrices]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": kept, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.95), fused=fused or None)


def random_batch(batch):
    """A batch of the shapes that training_cost makes; frames are stacked beforehand."""
    generator = torch.Generator().manual_seed(7)
    frames = torch.randint(0, 256, (batch, CONTEXT + 3, 84, 84), dtype=torch.uint8,
                           generator=generator)
    actions = torch.randint(0, ACTIONS, (batch, CONTEXT), generator=generator)
    returns = torch.rand(batch, CONTEXT, generator=generator) * 2 - 1
    return stacks(frames), actions, returns, torch.full((batch,), 9)


def stacks(frames):
    """[batch, time + 3, 84, 84] to [batch, time, 4, 84, 84], oldest frame first."""
    return frames.unfold(1, 4, 1).permute(0, 1, 4, 2, 3).contiguous()


def load_overtone(model, weights):
    """Takes weights by Overtone's names; its matrices are [in, out]."""
    names = {"positions.local": model.positions, "positions.global": model.global_positions,
             "final_norm_weight": model.norm.weight,
             "final_norm_bias": model.norm.bias,
             "action.table": model.action_embedding.weight,
             "encoder.linear_bias": model.encoder[7].bias,
             "returns.bias": model.return_embedding[0].bias}
    matrices = {"encoder.linear_weight": model.encoder[7].weight, "head.weight": model.head.weight,
                "returns.weight": model.return_embedding[0].weight}
    for n, at in enumerate((0, 2, 4), 1):
        names[f"encoder.conv_{n}_weight"], names[f"encoder.conv_{n}_bias"] = (
            model.encoder[at].weight, model.encoder[at].bias)
    used = set()

    def put(parameter, name, value=None):
        used.add(name)
        value = weights[name] if value is None else value
        with torch.no_grad():
            parameter.copy_(value.reshape(parameter.shape))

    for name, parameter in names.items():
        put(parameter, name)
    for name, parameter in matrices.items():
        put(parameter, name, weights[name].T)
    for n, block in enumerate(model.blocks):
        of = f"blocks.{n}."
        for k in (1, 2):
            norm = getattr(block, f"norm_{k}")
            put(norm.weight, f"{of}norm_{k}_weight")
            put(norm.bias, f"{of}norm_{k}_bias")
            layer = block.mlp[2 * k - 2]
            put(layer.weight, f"{of}mlp_{k}_weight", weights[f"{of}mlp_{k}_weight"].T)
            put(layer.bias, f"{of}mlp_{k}_bias")
        attention = block.attention
        layers = (attention.query, attention.key, attention.value)
        for layer, weight, bias in zip(layers, weights[of + "qkv_weight"].T.chunk(3),
                                       weights[of + "qkv_bias"].chunk(3)):
            put(layer.weight, of + "qkv_weight", weight)
            put(layer.bias, of + "qkv_bias", bias)
        put(attention.projection.weight, of + "projection_weight",
            weights[of + "projection_weight"].T)
        put(attention.projection.bias, of + "projection_bias")
    return used
