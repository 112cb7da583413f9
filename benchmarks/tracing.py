"""What an operation costs when there is nothing to compute: tracing, deriving and look-up, on four numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import genesis
from benchmarks.measure import Bar, Result, Settings, compare
from benchmarks.peers import eager, torch

__all__ = ["run"]

LINKS = 50  # of a chain, two operations each


def run(settings: Settings) -> list[Result]:
    """Forward and backward of a chain, per forward operation; and forward alone."""
    results = []
    for title, build in (("forward and backward", _both), ("forward", _forward)):
        found = compare(f"an operation on tiny tensors, {title}", {
            "genesis": build(genesis), "torch eager": eager(lambda build=build: build(torch)),
        }, settings, least_seconds=5e-3)
        operations = 2 * LINKS
        found.medians = {name: seconds / operations for name, seconds in found.medians.items()}
        if build is _both:
            mine, limit = found.medians["genesis"], max(4e-6, found.medians.get("torch eager", 0))
            found.bars.append(Bar("us, at most 4 (or torch's, on a slower machine)", mine * 1e6, mine <= limit))
        results.append(found)
    return results


def _chain(x: Any, a: Any, b: Any) -> Any:
    for _ in range(LINKS):
        x = x * a + b
    return x


def _operands(library: Any) -> tuple[Any, Any, Any]:
    return (
        library.tensor([0.1, 0.2, 0.3, 0.4], requires_grad=True), library.tensor([0.9, 0.8, 0.7, 0.6]),
        library.tensor([0.1, 0.1, 0.1, 0.1]),
    )


def _both(library: Any) -> Callable[[], Any]:
    x, a, b = _operands(library)

    def call() -> Any:
        x.grad = None
        _chain(x, a, b).sum().backward()
        return x.grad.tolist()

    return call


def _forward(library: Any) -> Callable[[], Any]:
    x, a, b = _operands(library)
    x = x.detach()
    return lambda: _chain(x, a, b).tolist()
