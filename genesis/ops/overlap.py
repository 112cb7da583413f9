"""Layouts that reach an element of memory by several ways, as windows that overlap do."""

from __future__ import annotations

from itertools import combinations
from math import gcd

import numpy as np

from genesis.ir.shapes import numel
from genesis.ops.layout import Layout

__all__ = ["colliding_axes", "is_injective"]

_COUNTED = 1 << 22  # elements whose places are compared one by one, where strides alone do not tell


def colliding_axes(at: Layout) -> tuple[int, int] | None:
    """Two axes along which steps of different numbers meet, the longer one first. Strides are positive.

    >>> colliding_axes(Layout((3, 2), (1, 1), 0)), colliding_axes(Layout((2, 3), (3, 1), 0))
    ((0, 1), None)
    """
    for a, b in combinations(range(len(at.shape)), 2):
        unit = gcd(at.strides[a], at.strides[b])
        if at.strides[b] < at.shape[a] * unit and at.strides[a] < at.shape[b] * unit:
            return (a, b) if at.shape[a] >= at.shape[b] else (b, a)
    return None


def is_injective(at: Layout) -> bool:
    """Whether each element of memory is reached once at most. Where that would take long to find out, False.

    >>> is_injective(Layout((2, 2), (2, 1), 0)), is_injective(Layout((2, 2), (1, 1), 0))
    (True, False)
    """
    axes = sorted((abs(s), e) for e, s in zip(at.shape, at.strides, strict=True) if e != 1)
    reach, unclear = 1, 0
    for number, (stride, extent) in enumerate(axes, 1):
        if stride < reach:
            unclear = number  # of the axes from here outwards, each steps over all that lies within
        reach += stride * (extent - 1)
    inner = axes[:unclear]
    if not inner or 0 in at.shape:
        return True
    if inner[0][0] == 0 or numel(e for _, e in inner) > _COUNTED:
        return False
    places = np.zeros(1, np.int64)
    for stride, extent in inner:
        places = np.add.outer(places, stride * np.arange(extent)).reshape(-1)
    return np.unique(places).size == places.size
