"""The pictures that the examples leave behind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot

__all__ = ["learning_curves", "shown"]


def learning_curves(
    path: Path, losses: Sequence[float], scores: dict[int, float], score: str,
    images: Sequence[tuple[np.ndarray, str, bool]] = (),
) -> None:
    """Loss by step, a held-out score by step, and below them images under their labels (red where one is wrong), as a PNG."""
    figure = pyplot.figure(figsize=(9, 3.4 + 1.4 * bool(images)), layout="constrained")
    grid = figure.add_gridspec(1 + bool(images), max(2 * ((len(images) + 1) // 2), 2), height_ratios=[3, 1][: 1 + bool(images)])
    half = grid.ncols // 2
    left, right = figure.add_subplot(grid[0, :half]), figure.add_subplot(grid[0, half:])
    left.plot(range(1, len(losses) + 1), losses, color="#c4512d", linewidth=0.9)
    left.set(title="training loss", xlabel="step", yscale="log")
    right.plot(list(scores), list(scores.values()), color="#2f6fde", marker="o", markersize=3)
    right.set(title=f"{score} (last: {list(scores.values())[-1]:.4f})", xlabel="step")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    for column, (image, label, correct) in enumerate(images):
        axes = figure.add_subplot(grid[1, column])
        axes.imshow(image, cmap="gray")
        axes.set_title(label, fontsize=8, color="black" if correct else "#c4512d")
        axes.axis("off")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def shown(
    images: np.ndarray, labels: np.ndarray, guesses: np.ndarray, names: Sequence[Any]
) -> list[tuple[np.ndarray, str, bool]]:
    """What `learning_curves` draws of classified images."""
    return [(image, str(names[g]), bool(y == g)) for image, y, g in zip(images, labels, guesses, strict=True)]
