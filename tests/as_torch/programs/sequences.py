"""Sequences of different lengths in one nested tensor: attention within each, and a mean of each to classify it by."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nested import nested_tensor

HEADS, WIDTH = 2, 16


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH, bias=False)
        self.queries, self.keys, self.values = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        x = self.norm(x)
        parts = [part(x).unflatten(-1, (HEADS, WIDTH // HEADS)) for part in (self.queries, self.keys, self.values)]
        found = F.scaled_dot_product_attention(*[part.transpose(1, 2) for part in parts])
        return self.out(found.transpose(1, 2).flatten(-2))


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(4, WIDTH)
        self.attention = nn.ModuleList([Attention() for _ in range(2)])
        self.classify = nn.Linear(WIDTH, 3)

    def forward(self, sequences):
        lengths = [len(sequence) for sequence in sequences]
        x = self.embed(torch.cat(sequences))
        x = torch.nested.as_nested_tensor([*x.split(lengths)], layout=torch.jagged)
        for layer in self.attention:
            x = layer(x) + F.gelu(x)
        return self.classify(torch.stack([sequence.mean(0) for sequence in x.unbind()]))


random = np.random.default_rng(0)
sequences = [torch.from_numpy(random.standard_normal((length, 4)).astype(np.float32)) for length in (3, 7, 1, 5)]
labels = torch.tensor([0, 1, 2, 1])
network = Network()
with torch.no_grad():
    for number, parameter in enumerate(network.parameters()):
        values = np.random.default_rng(number).standard_normal(tuple(parameter.shape)) / 4
        parameter.copy_(torch.from_numpy(values.astype(np.float32)))
optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
for step in range(12):
    optimizer.zero_grad()
    loss = F.cross_entropy(network(sequences), labels)
    loss.backward()
    optimizer.step()
    if step % 4 == 3:
        print(step, round(loss.item(), 4))

x = nested_tensor(sequences, layout=torch.jagged)
print(x.is_nested, x.layout, x.dim(), x.size(0), x.size(-1), x.offsets(), isinstance(x, torch.Tensor))
print(x.to_padded_tensor(0.0).shape, (x * 2).sum(1), x.mean(-1).unbind()[2], [len(part) for part in x])
