"""Classify coloured shapes in pictures of 32x32: two convolutions with pools, two dense layers, Adam.

The pictures are drawn here: ten kinds of shape, of any colour, size, turn and place, before a noisy ground.

    python examples/cnn.py [--compile] [--epochs 4] [--pictures 8000] [--picture out/cnn.png]
"""

from __future__ import annotations

import numpy as np
from plots import shown
from training import options_of, report, train

import genesis
from genesis import nn, optim
from genesis.utils.data import DataLoader, TensorDataset

BATCH = 64
SIDE = 32
SEED = 0
NAMES = ["disc", "ring", "square", "frame", "triangle", "cross", "plus", "stripes", "star", "crescent"]


def shape(kind: int, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Which points (u, v) of the plane lie in a shape of radius about 1."""
    radius, angle, square = np.hypot(u, v), np.arctan2(v, u), np.maximum(np.abs(u), np.abs(v))
    return [
        radius < 1, (radius < 1) & (radius > 0.55), square < 0.85, (square < 0.9) & (square > 0.5),
        (v > -0.6) & (1.7 * np.abs(u) + v < 1), (np.abs(np.abs(u) - np.abs(v)) < 0.35) & (square < 0.9),
        (np.minimum(np.abs(u), np.abs(v)) < 0.27) & (square < 1), (np.cos(8 * u) > 0) & (square < 0.95),
        radius < 0.65 + 0.35 * np.cos(5 * angle), (radius < 1) & (np.hypot(u - 0.45, v) > 0.75),
    ][kind]


def draw(count: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """`count` pictures (count, 3, 32, 32), about 0 to 1, and which shape each shows."""
    kinds = random.integers(len(NAMES), size=count)
    grid = np.stack(np.meshgrid(np.arange(SIDE), np.arange(SIDE)), 0).astype(np.float32)
    pictures = random.normal(scale=0.08, size=(count, 3, SIDE, SIDE)) + random.uniform(0, 1, size=(count, 3, 1, 1))
    for picture, kind in zip(pictures, kinds, strict=True):
        size, turn = random.uniform(6, 12), random.uniform(-0.5, 0.5)
        x, y = (grid - random.uniform(12, SIDE - 12, size=(2, 1, 1))) / size
        inside = shape(kind, np.cos(turn) * x + np.sin(turn) * y, np.cos(turn) * y - np.sin(turn) * x)
        ground = picture.mean(axis=(1, 2))
        colour = (ground + random.uniform(0.25, 0.75, size=3)) % 1
        picture[:, inside] += (colour - ground)[:, None]
    return pictures.astype(np.float32), kinds


def centred(pictures: np.ndarray) -> genesis.Tensor:
    """What the network sees: every colour of a picture less its mean, in units of a usual contrast."""
    return genesis.tensor((pictures - pictures.mean(axis=(2, 3), keepdims=True)) / np.float32(0.25))


def network() -> nn.Module:
    """(rows, 3, 32, 32) -> scores (rows, 10)."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * (SIDE // 4) ** 2, 128), nn.ReLU(), nn.Linear(128, len(NAMES)),
    )


def main() -> None:
    parser = options_of(__doc__, "cnn")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--pictures", type=int, default=8000, help="to train on")
    options = parser.parse_args()

    genesis.manual_seed(SEED)
    random = np.random.default_rng(SEED)
    train_x, train_y = draw(options.pictures, random)
    test_x, test_y = draw(1000, random)
    loader = DataLoader(
        TensorDataset(centred(train_x), genesis.tensor(train_y)), batch_size=BATCH, shuffle=True, drop_last=True
    )
    tests = centred(test_x)
    model = network()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)

    def step(pictures: genesis.Tensor, kinds: genesis.Tensor) -> genesis.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(pictures), kinds)
        loss.backward()
        optimizer.step()
        return loss.detach()

    @genesis.no_grad()
    def guesses() -> np.ndarray:
        return np.concatenate([model(part).argmax(dim=1).numpy() for part in tests.split(250)])

    def accuracy(_: int) -> float:
        return float((guesses() == test_y).mean())

    step = genesis.compile(step) if options.compile else step
    training = train(step, [loader] * options.epochs, options.epochs * len(loader), accuracy)
    some = shown(test_x[:12].clip(0, 1).transpose(0, 2, 3, 1), test_y[:12], guesses()[:12], NAMES)
    report(training, "test accuracy", f"({len(test_y)} pictures held out)", f"{BATCH}", options.picture, some)


if __name__ == "__main__":
    main()
