"""What the longer examples share: their options, the loop that trains and scores, and what they tell at the end."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from plots import learning_curves
from tqdm import tqdm

import genesis

__all__ = ["Training", "options_of", "report", "train"]


class Training(NamedTuple):
    """The loss of each step, the scores by the number of steps before, and the seconds that the steps took."""

    losses: list[float]
    scores: dict[int, float]
    seconds: float


def options_of(description: str, name: str) -> argparse.ArgumentParser:
    """Those that all have; an example adds its own."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--compile", action="store_true", help="capture the training step, and replay it")
    parser.add_argument("--picture", type=Path, default=Path(f"out/{name}.png"), help="where the curves go")
    return parser


def train(
    step: Callable[..., genesis.Tensor], rounds: Iterable[Iterable[Sequence[Any]]], steps: int, score: Callable[[int], float]
) -> Training:
    """A step for every batch, and after each round a score, which is told the number of steps so far."""
    losses: list[float] = []
    scores: dict[int, float] = {}
    seconds = 0.0
    with tqdm(total=steps, unit="step") as progress:
        for batches in rounds:
            began = time.perf_counter()
            for batch in batches:
                losses.append(step(*batch).item())
                progress.update()
            seconds += time.perf_counter() - began
            scores[len(losses)] = score(len(losses))
            progress.set_postfix(loss=f"{losses[-1]:.4f}", score=f"{scores[len(losses)]:.4f}")
    return Training(losses, scores, seconds)


def report(training: Training, name: str, note: str, batch: str, picture: Path, images: Sequence[Any] = ()) -> None:
    """The last score, the time and the curves."""
    losses, scores, seconds = training
    learning_curves(picture, losses, scores, name, images)
    print(f"{name}  {scores[len(losses)]:.4f} {note}")
    print(f"time           {seconds:.1f} s, {seconds / len(losses) * 1e3:.2f} ms a step of {batch}")
    print(f"picture        {picture}")
