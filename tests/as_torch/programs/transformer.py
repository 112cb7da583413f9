"""A small GPT with tied weights, weight decay by groups, gradient accumulation and sampling."""

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
from torch.nn import functional as F

numbers = np.random.RandomState(1)


@dataclass
class Config:
    block_size: int = 8
    vocab_size: int = 17
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 16


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=False)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd)
        self.n_head = config.n_head
        self.flash = hasattr(torch.nn.functional, "scaled_dot_product_attention")
        mask = torch.tril(torch.ones(config.block_size, config.block_size))
        self.register_buffer("bias", mask.view(1, 1, config.block_size, config.block_size))

    def forward(self, x, slow):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(C, dim=2)
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (q, k, v))
        if self.flash and not slow:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=True)
        else:
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
            y = F.softmax(att, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(config.vocab_size, config.n_embd), "wpe": nn.Embedding(config.block_size, config.n_embd),
            "h": nn.ModuleList([Attention(config) for _ in range(config.n_layer)]), "ln_f": nn.LayerNorm(config.n_embd)})
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.transformer.wte.weight = self.lm_head.weight
        self.apply(self._init_weights)

    def _init_weights(self, module):
        if isinstance(module, nn.Linear | nn.Embedding):
            module.weight.data = torch.from_numpy(numbers.normal(0, 0.2, tuple(module.weight.shape)).astype(np.float32))
            if getattr(module, "bias", None) is not None:
                torch.nn.init.zeros_(module.bias)

    def forward(self, idx, targets=None, slow=False):
        pos = torch.arange(0, idx.size(1), dtype=torch.long, device=idx.device)
        x = self.transformer.wte(idx) + self.transformer.wpe(pos)
        for block in self.transformer.h:
            x = x + block(x, slow)
        logits = self.lm_head(self.transformer.ln_f(x))
        if targets is None:
            return logits[:, [-1], :], None
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)


config = Config()
model = GPT(config)
named = {name: p for name, p in model.named_parameters() if p.requires_grad}
groups = [{"params": [p for p in named.values() if p.dim() >= 2], "weight_decay": 0.1},
          {"params": [p for p in named.values() if p.dim() < 2], "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95))
scaler = torch.amp.GradScaler("cpu", enabled=False)
print(sum(p.numel() for p in model.parameters()), len(named))
for step in range(4):
    for group in optimizer.param_groups:
        group["lr"] = 1e-2 * (step + 1) / 4
    for micro in range(2):
        x = torch.from_numpy(numbers.randint(0, config.vocab_size, (3, config.block_size)))
        with torch.amp.autocast(device_type="cpu", dtype=torch.bfloat16, enabled=False):
            _, loss = model(x, torch.roll(x, -1, 1), slow=micro == 1)
        scaler.scale(loss / 2).backward()
        print(f"{loss.item():.5f}")
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
model.eval()
idx = torch.zeros((1, 1), dtype=torch.long)
with torch.no_grad():
    for _ in range(6):
        logits, _ = model(idx[:, -config.block_size :])
        values, _ = torch.topk(logits[:, -1, :], 3)
        logits = logits[:, -1, :].masked_fill(logits[:, -1, :] < values[:, [-1]], -float("inf"))
        idx = torch.cat((idx, torch.softmax(logits, -1).argmax(-1, keepdim=True)), dim=1)
print(idx.tolist())
