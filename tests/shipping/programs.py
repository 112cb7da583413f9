"""What the tests of shipping export."""

import genesis
from genesis import nn


class Block(nn.Module):
    """A transformer's block."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.projections, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, time, width = x.shape
        parts = self.projections(self.norm(x)).split(width, dim=2)
        q, k, v = (part.view(batch, time, self.heads, width // self.heads).transpose(1, 2) for part in parts)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).contiguous().view(batch, time, width))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """A language model of characters."""

    def __init__(self, tokens=17, width=16, heads=2, layers=1, length=32):
        super().__init__()
        self.tokens, self.places = nn.Embedding(tokens, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, tokens, bias=False)

    def forward(self, indices):
        _, time = indices.shape
        x = self.tokens(indices) + self.places(genesis.arange(time))
        return self.head(self.norm(self.blocks(x)))


def mlp():
    return nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.Linear(8, 3)).eval()


def cnn():
    convolution = nn.Conv2d(2, 4, 3, padding=1, stride=2)
    return nn.Sequential(
        convolution, nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 3)).eval()
