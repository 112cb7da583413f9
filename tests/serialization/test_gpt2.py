"""A GPT-2 whose weights come from a safetensors file, under the names and in the layout that such files have."""

import math

import numpy as np
import pytest
import safetensors.torch
import torch

import genesis
from genesis import nn
from genesis.nn import functional as F
from genesis.serialization import safetensors as files

LAYERS, HEADS, WIDTH, VOCABULARY, POSITIONS = 2, 4, 32, 61, 16


def weights():
    """Random weights as files of GPT-2 have them: products take them as (inputs, outputs)."""
    generator = torch.Generator().manual_seed(0)

    def draw(*shape):
        return torch.randn(*shape, generator=generator) * 0.2

    made = {"wte.weight": draw(VOCABULARY, WIDTH), "wpe.weight": draw(POSITIONS, WIDTH)}
    for layer in range(LAYERS):
        for name, inputs, outputs in (
            ("attn.c_attn", WIDTH, 3 * WIDTH), ("attn.c_proj", WIDTH, WIDTH), ("mlp.c_fc", WIDTH, 4 * WIDTH),
            ("mlp.c_proj", 4 * WIDTH, WIDTH),
        ):
            made[f"h.{layer}.{name}.weight"], made[f"h.{layer}.{name}.bias"] = draw(inputs, outputs), draw(outputs)
        for name in ("ln_1", "ln_2"):
            made[f"h.{layer}.{name}.weight"], made[f"h.{layer}.{name}.bias"] = draw(WIDTH) + 1, draw(WIDTH)
        made[f"h.{layer}.attn.bias"] = torch.ones(POSITIONS, POSITIONS).tril().reshape(1, 1, POSITIONS, POSITIONS)
    made["ln_f.weight"], made["ln_f.bias"] = draw(WIDTH) + 1, draw(WIDTH)
    return made


def logits_of_torch(w, tokens):
    functional = torch.nn.functional

    def norm(x, name):
        return functional.layer_norm(x, (WIDTH,), w[name + ".weight"], w[name + ".bias"])

    def product(x, name):
        return x @ w[name + ".weight"] + w[name + ".bias"]

    x = w["wte.weight"][tokens] + w["wpe.weight"][: tokens.shape[1]]
    for layer in range(LAYERS):
        h = f"h.{layer}."
        parts = product(norm(x, h + "ln_1"), h + "attn.c_attn").split(WIDTH, dim=2)
        q, k, v = (part.unflatten(2, (HEADS, -1)).transpose(1, 2) for part in parts)
        scores = q @ k.transpose(2, 3) / math.sqrt(WIDTH // HEADS)
        mask = w[h + "attn.bias"][:, :, : tokens.shape[1], : tokens.shape[1]] == 0
        mixed = scores.masked_fill(mask, -math.inf).softmax(-1) @ v
        x = x + product(mixed.transpose(1, 2).flatten(2), h + "attn.c_proj")
        x = x + product(functional.gelu(product(norm(x, h + "ln_2"), h + "mlp.c_fc"), approximate="tanh"), h + "mlp.c_proj")
    return norm(x, "ln_f") @ w["wte.weight"].T


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = (part.unflatten(2, (HEADS, -1)).transpose(1, 2) for part in self.c_attn(x).split(WIDTH, dim=2))
        return self.c_proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Feedforward(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc, self.c_proj = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.attn, self.ln_2, self.mlp = nn.LayerNorm(WIDTH), Attention(), nn.LayerNorm(WIDTH), Feedforward()

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(POSITIONS, WIDTH)
        self.h, self.ln_f = nn.ModuleList([Block() for _ in range(LAYERS)]), nn.LayerNorm(WIDTH)
        self.lm_head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(genesis.arange(tokens.shape[1]))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def loaded(read):
    """A model with weights as a file holds them."""
    state = {name: w for name, w in read.items() if not name.endswith(".attn.bias")}
    for name in state:
        if name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
            state[name] = state[name].t()
    model = GPT2()
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert (missing, unexpected) == (["lm_head.weight"], [])
    return model


@pytest.mark.parametrize("source", ["file", "half"])
def test_logits_are_those_of_pytorch(tmp_path, source):
    made = weights()
    if source == "half":
        made = {name: w.bfloat16() for name, w in made.items()}
    safetensors.torch.save_file(made, tmp_path / "model.safetensors", {"format": "pt"})
    read = files.load_file(tmp_path / "model.safetensors")
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, (2, POSITIONS))
    expected = logits_of_torch({name: w.float() for name, w in made.items()}, torch.tensor(tokens))
    with genesis.no_grad():
        logits = loaded(read)(genesis.tensor(tokens))
    np.testing.assert_allclose(logits.numpy(), expected.numpy(), rtol=1e-4, atol=1e-4)
