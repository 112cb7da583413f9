"""Networks that people train, of the kinds that the four of `networks` leave out: the same lines serve genesis and torch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.measure import Limits, Result, Settings, averaged
from benchmarks.networks import Network, gpt
from benchmarks.training import step

__all__ = ["networks", "recurrent", "run"]

AVERAGE, WORST = Limits(compiled=0.6, eager=0.8), Limits(compiled=0.9, eager=1.0)


def run(settings: Settings) -> list[Result]:
    """A training step of each, then their averages."""
    results = [step(network, settings) for network in networks(settings)]
    return [*results, averaged("training steps of larger networks, on average", results, AVERAGE)]


def networks(settings: Settings) -> Iterator[Network]:
    """Eight steps: residual and depthwise convolutions, encoders with skips, recurrent layers, wide transformers."""
    size, random = settings.size, np.random.default_rng(0)
    side, batch = size(32, 16), size(32, 2)
    images = random.normal(size=(batch, 3, side, side)).astype(np.float32)
    labels = random.integers(10, size=batch)

    def network(title: str, model: Callable[[Any], Any], inputs: np.ndarray, targets: np.ndarray, optimizer: str) -> Network:
        return Network(title, inputs, targets, model, None, None, optimizer, WORST)

    yield network(f"ResNet-18, batch {batch} of {side}x{side}, SGD", lambda nn: _resnet(nn, size(64, 8)), images, labels, "SGD")

    yield _language_model(settings, "LSTM")
    yield _language_model(settings, "GRU")
    yield network(f"vision transformer, 6 layers, width 192, batch {batch}, AdamW",
                  lambda nn: _vision_transformer(nn, side, 4, size(192, 24), 6), images, labels, "AdamW")

    fields = random.normal(size=(size(8, 1), 3, size(64, 16), size(64, 16))).astype(np.float32)
    yield network("U-Net, widths 32-64-128, batch 8 of 64x64, Adam", lambda nn: _u_net(nn, size(32, 4)),
                  fields, fields[:, :1].copy(), "Adam")

    rows = random.normal(size=(size(128, 4), 784)).astype(np.float32)
    yield network("autoencoder, 784-256-64-256-784, batch 128, Adam",
                  lambda nn: _autoencoder(nn, 784, 256, 64), rows, rows, "Adam")

    yield network(f"depthwise convolutions, 6 blocks, batch {batch} of {side}x{side}, Adam",
                  lambda nn: _depthwise(nn, size(32, 4)), images, labels, "Adam")

    words, length, width = 96, size(256, 8), size(512, 16)
    tokens = random.integers(words, size=(2, length + 1))
    yield network(f"GPT, 4 layers, width {width}, 2x{length} tokens, AdamW", lambda nn: gpt(nn, 4, width, 8, length, words),
                  tokens[:, :-1], tokens[:, 1:].reshape(-1), "AdamW")


def _language_model(settings: Settings, layer: str) -> Network:
    words, length, width = settings.size(1000, 50), settings.size(35, 5), settings.size(256, 16)
    tokens = np.random.default_rng(1).integers(words, size=(settings.size(20, 2), length + 1))
    return Network(
        f"{layer} language model, 2 layers, width {width}, 20x{length} tokens, Adam", tokens[:, :-1], tokens[:, 1:].reshape(-1),
        lambda nn: recurrent(nn, getattr(nn, layer), words, width), None, None, "Adam", WORST,
    )


def _resnet(nn: Any, width: int) -> Any:
    """ResNet-18 (He et al., 2015), with the small first convolution that images of 32x32 take."""

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, inside: int, out: int, stride: int) -> None:
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(inside, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU(),
                nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out),
            )
            same = stride == 1 and inside == out
            self.short = nn.Identity() if same else nn.Sequential(
                nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out))

        def forward(self, x: Any) -> Any:
            return (self.body(x) + self.short(x)).relu()

    widths = [width * 2**k for k in range(4)]
    blocks = [
        Block(a if first else b, b, 2 if first and a != b else 1)
        for a, b in pairwise([width, *widths]) for first in (True, False)
    ]
    return nn.Sequential(
        nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(), *blocks,
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 10),
    )


def recurrent(nn: Any, layer: Any, words: int, width: int) -> Any:
    class Language(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.layers = nn.Embedding(words, width), layer(width, width, 2, batch_first=True)
            self.head = nn.Linear(width, words)

        def forward(self, tokens: Any) -> Any:
            return self.head(self.layers(self.words(tokens))[0]).reshape(-1, words)

    return Language()


def _vision_transformer(nn: Any, side: int, patch: int, width: int, depth: int) -> Any:
    class VisionTransformer(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, width, patch, patch)
            self.places = nn.Embedding((side // patch) ** 2, width)
            layer = nn.TransformerEncoderLayer(width, 3, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
            self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

        def forward(self, x: Any) -> Any:
            x = self.patches(x).flatten(2).transpose(1, 2) + self.places.weight
            return self.head(self.norm(self.encoder(x)).mean(1))

    return VisionTransformer()


def _u_net(nn: Any, width: int) -> Any:
    """A U-Net (Ronneberger et al., 2015) of three levels."""
    cat = sys.modules[nn.__name__.partition(".")[0]].cat

    def level(inside: int, out: int) -> Any:
        return nn.Sequential(nn.Conv2d(inside, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU(),
                             nn.Conv2d(out, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU())

    class UNet(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            widths = [width * 2**k for k in range(3)]
            self.down = nn.ModuleList([level(a, b) for a, b in pairwise([3, *widths])])
            self.up = nn.ModuleList([nn.ConvTranspose2d(b, a, 2, 2) for a, b in pairwise(widths)][::-1])
            self.join = nn.ModuleList([level(2 * a, a) for a in widths[:-1]][::-1])
            self.pool, self.head = nn.MaxPool2d(2), nn.Conv2d(width, 1, 1)

        def forward(self, x: Any) -> Any:
            kept = []
            for number, part in enumerate(self.down):
                x = part(self.pool(x) if number else x)
                kept.append(x)
            for up, join, skipped in zip(self.up, self.join, kept[-2::-1], strict=True):
                x = join(cat((up(x), skipped), 1))
            return self.head(x)

    return UNet()


def _autoencoder(nn: Any, *widths: int) -> Any:
    layers = [layer for a, b in pairwise([*widths, *widths[-2::-1]]) for layer in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


def _depthwise(nn: Any, width: int) -> Any:
    """MobileNet's blocks (Howard et al., 2017)."""

    def block(inside: int, out: int, stride: int) -> list[Any]:
        return [nn.Conv2d(inside, inside, 3, stride, 1, groups=inside, bias=False), nn.BatchNorm2d(inside), nn.ReLU6(),
                nn.Conv2d(inside, out, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU6()]

    sizes = [(width, 2 * width, 1), (2 * width, 4 * width, 2), (4 * width, 4 * width, 1), (4 * width, 8 * width, 2),
             (8 * width, 8 * width, 1), (8 * width, 16 * width, 2)]
    return nn.Sequential(
        nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU6(),
        *[layer for s in sizes for layer in block(*s)],
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16 * width, 10),
    )
