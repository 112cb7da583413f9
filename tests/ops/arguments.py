"""What calls of operations are tried with."""

from typing import Any, NamedTuple

import numpy as np


class Sample(NamedTuple):
    """One call."""

    arguments: tuple[Any, ...]
    keywords: dict[str, Any] = {}  # noqa: RUF012


def values(*shape, seed=0):
    """Ordinary numbers, none of them equal."""
    return np.random.default_rng(seed).normal(size=shape) * 2


def indices(bound, *shape):
    return np.random.default_rng(1).integers(0, bound, shape)
