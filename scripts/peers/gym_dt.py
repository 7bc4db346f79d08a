"""The Decision Transformer of Chen et al. (2021) on vectors in PyTorch, layer by layer, with
HalfCheetah's sizes.

Written from the description of the published model. `check_models.py` compares its loss with
Overtone's for the same weights and batch. It leaves out the published program's heads for
observations and returns, which are never trained, and its unused token embedding.

Options that change no result:
    published  masks padding in the scores and removes it from the loss by index, as the published
               code does; without this option there is only the causal mask (these batches have
               no padding) and the loss is a weighted mean
    sdpa       torch.nn.functional.scaled_dot_product_attention
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

LAYERS, WIDTH, CONTEXT, OBSERVATION, ACTION, HORIZON = 3, 128, 20, 17, 6, 1000
DROPOUT = 0.1


class Block(nn.Module):
    """GPT-2's block with one head and ReLU."""

    def __init__(self, published: bool, sdpa: bool):
        super().__init__()
        self.published, self.sdpa = published, sdpa
        self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.projection = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp_1, self.mlp_2 = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.dropout = nn.Dropout(DROPOUT)
        tokens = 3 * CONTEXT
        mask = torch.ones(tokens, tokens, dtype=torch.bool).tril()
        self.register_buffer("visible", mask, persistent=False)

    def attend(self, x, padding):
        batch, tokens, width = x.shape
        query, key, value = (part.view(batch, tokens, 1, width).transpose(1, 2)
                             for part in self.qkv(x).split(width, 2))
        if self.sdpa:
            dropout = DROPOUT if self.training else 0.0
            y = F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True)
        else:
            scores = query @ key.transpose(-2, -1) / math.sqrt(width)
            scores = torch.where(self.visible[:tokens, :tokens], scores, -1e4)
            if self.published:
                scores = scores + padding
            y = self.dropout(scores.softmax(-1)) @ value
        return self.dropout(self.projection(y.transpose(1, 2).reshape(batch, tokens, width)))

    def forward(self, x, padding):
        x = x + self.attend(self.norm_1(x), padding)
        return x + self.dropout(self.mlp_2(F.relu(self.mlp_1(self.norm_2(x)))))


class DecisionTransformer(nn.Module):
    def __init__(self, published=False, sdpa=False):
        super().__init__()
        self.published = published
        self.blocks = nn.ModuleList(Block(published, sdpa) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, 0.0, 0.02)
                nn.init.zeros_(module.bias)
        self.timestep_embedding = nn.Embedding(HORIZON, WIDTH)
        self.return_embedding = nn.Linear(1, WIDTH)
        self.observation_embedding = nn.Linear(OBSERVATION, WIDTH)
        self.action_embedding = nn.Linear(ACTION, WIDTH)
        self.embedding_norm = nn.LayerNorm(WIDTH)
        self.dropout = nn.Dropout(DROPOUT)
        self.head = nn.Sequential(nn.Linear(WIDTH, ACTION), nn.Tanh())

    def predict(self, observations, actions, returns_to_go, timesteps, mask):
        """Actions at every observation token: [batch, time, ACTION]."""
        batch, time, _ = observations.shape
        place = self.timestep_embedding(timesteps)
        tokens = [self.return_embedding(returns_to_go[..., None]) + place,
                  self.observation_embedding(observations) + place,
                  self.action_embedding(actions) + place]
        x = torch.stack(tokens, 2).reshape(batch, 3 * time, WIDTH)
        x = self.dropout(self.embedding_norm(x))
        padding = (1 - mask.repeat_interleave(3, 1)[:, None, None]) * -1e4
        for block in self.blocks:
            x = block(x, padding)
        return self.head(self.norm(x)[:, 1::3])

    def loss(self, observations, actions, returns_to_go, timesteps, mask):
        predicted = self.predict(observations, actions, returns_to_go, timesteps, mask)
        if self.published:
            real = mask.reshape(-1) > 0
            predicted, wanted = (x.reshape(-1, ACTION)[real] for x in (predicted, actions))
            return ((predicted - wanted) ** 2).mean()
        errors = ((predicted - actions) ** 2).mean(-1)
        return (errors * mask).sum() / mask.sum()


def optimizer(model, fused=False):
    return torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=1e-4, betas=(0.9, 0.95),
                             fused=fused or None)


def random_batch(batch):
    """A batch of the shapes that training_cost makes, without padding."""
    generator = torch.Generator().manual_seed(7)

    def uniform(*shape):
        return torch.rand(*shape, generator=generator) * 2 - 1

    timesteps = 15 * torch.arange(batch)[:, None] + torch.arange(CONTEXT)
    return (uniform(batch, CONTEXT, OBSERVATION), uniform(batch, CONTEXT, ACTION),
            uniform(batch, CONTEXT), timesteps, torch.ones(batch, CONTEXT))


def load_overtone(model, weights):
    """Takes weights by Overtone's names; its matrices are [in, out]."""
    layers = {"returns.": model.return_embedding, "encoder.": model.observation_embedding,
              "action.": model.action_embedding, "head.": model.head[0]}
    norms = {"positions.norm_": model.embedding_norm, "final_norm_": model.norm}
    for n, block in enumerate(model.blocks):
        for name in ("qkv", "projection", "mlp_1", "mlp_2"):
            layers[f"blocks.{n}.{name}_"] = getattr(block, name)
        for name in ("norm_1", "norm_2"):
            norms[f"blocks.{n}.{name}_"] = getattr(block, name)
    used = {"positions.table"}
    with torch.no_grad():
        model.timestep_embedding.weight.copy_(weights["positions.table"])
        for kind in (layers, norms):
            for name, layer in kind.items():
                weight = weights[name + "weight"]
                layer.weight.copy_(weight.T if kind is layers else weight)
                layer.bias.copy_(weights[name + "bias"])
                used |= {name + "weight", name + "bias"}
    return used
