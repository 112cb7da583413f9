"""Roots of unity, accurate to the last digit."""

from __future__ import annotations

import numpy as np


def roots(numerators: np.ndarray, n: int) -> np.ndarray:
    """exp(-2 pi i k / n) for the `numerators` k."""
    quarters = (4 * numerators + n // 2) // n
    # The angle, at most an eighth of a turn, in two parts: the small second part is a correction of the result.
    angles = (4 * numerators - quarters * n) * (np.arctan(np.longdouble(1)) * 2 / n)
    near = angles.astype(np.float64)
    left = (angles - near).astype(np.float64)
    cosines, sines = np.cos(near), np.sin(near)
    found = (cosines - left * sines) - 1j * (sines + left * cosines)
    # Multiply by an exact power of -i.
    return np.asarray(found * np.array([1, -1j, -1, 1j])[quarters % 4])
