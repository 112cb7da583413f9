"""Train a classifier of handwritten digits: scikit-learn's 1,797 images of 8x8 pixels, a fifth of them held out.

    python examples/train_digits.py [--epochs 40] [--picture out/digits.png]
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import genesis
from genesis import nn, optim

BATCH = 64
RATE = 3e-3
SEED = 0


def load() -> tuple[genesis.Tensor, genesis.Tensor, genesis.Tensor, genesis.Tensor]:
    """Training images and labels, then those held out: images (rows, 64) in [0, 1], labels (rows,)."""
    digits = load_digits()
    images = (digits.data / 16).astype(np.float32)
    train_x, test_x, train_y, test_y = train_test_split(
        images, digits.target, test_size=0.2, random_state=SEED, stratify=digits.target
    )
    return tuple(map(genesis.tensor, (train_x, train_y, test_x, test_y)))


def network() -> nn.Module:
    """64 pixels -> 10 scores."""
    return nn.Sequential(
        nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.2),
        nn.Linear(256, 128), nn.ReLU(), nn.Dropout(0.2),
        nn.Linear(128, 10),
    )


def train_epoch(model: nn.Module, optimizer: optim.Optimizer, images: genesis.Tensor, labels: genesis.Tensor) -> float:
    """One pass over the training images in random order; returns the mean loss."""
    model.train()
    order = genesis.randperm(len(labels))
    losses = []
    for start in range(0, len(labels), BATCH):
        batch = order[start : start + BATCH]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return genesis.stack(losses).mean().item()


@genesis.no_grad()
def accuracy(model: nn.Module, images: genesis.Tensor, labels: genesis.Tensor) -> float:
    """The share of images whose highest score is at their label."""
    model.eval()
    return (model(images).argmax(dim=1) == labels).float().mean().item()


def draw(losses: list[float], accuracies: list[float], path: Path) -> None:
    """Loss and held-out accuracy by epoch, as a PNG."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    epochs = range(1, len(losses) + 1)
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    left.plot(epochs, losses, color="#c4512d")
    left.set(title="training loss", xlabel="epoch", yscale="log")
    right.plot(epochs, accuracies, color="#2f6fde")
    right.axhline(0.97, color="#8b8f99", linewidth=0.8, linestyle="--")
    right.set(title=f"test accuracy (last: {accuracies[-1]:.4f})", xlabel="epoch", ylim=(0.8, 1.0))
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--picture", type=Path, default=Path("out/digits.png"))
    options = parser.parse_args()

    genesis.manual_seed(SEED)
    train_x, train_y, test_x, test_y = load()
    model = network()
    optimizer = optim.Adam(model.parameters(), lr=RATE)
    losses, accuracies, seconds = [], [], []
    with tqdm(range(options.epochs), unit="epoch") as progress:
        for epoch in progress:
            began = time.perf_counter()
            for group in optimizer.param_groups:  # a cosine from the full rate to none
                group["lr"] = RATE / 2 * (1 + math.cos(math.pi * epoch / options.epochs))
            losses.append(train_epoch(model, optimizer, train_x, train_y))
            seconds.append(time.perf_counter() - began)
            accuracies.append(accuracy(model, test_x, test_y))
            progress.set_postfix(loss=f"{losses[-1]:.4f}", accuracy=f"{accuracies[-1]:.4f}")

    draw(losses, accuracies, options.picture)
    stats = genesis.debug.stats()
    print(f"test accuracy     {accuracies[-1]:.4f}  ({len(test_y)} images held out)")
    print(f"time per epoch    {statistics.median(seconds) * 1e3:.1f} ms  (the first: {seconds[0] * 1e3:.0f} ms)")
    print(f"kernels compiled  {stats['kernels_compiled']}")
    print(f"kernels loaded    {stats['kernels_loaded']}  (from the cache)")
    print(f"picture           {options.picture}")


if __name__ == "__main__":
    main()
