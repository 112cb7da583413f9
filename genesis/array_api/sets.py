"""The distinct elements of an array, in order. Each NaN is one of its own."""

from __future__ import annotations

from typing import NamedTuple

from genesis.array_api.manipulation import _distinct, _made
from genesis.tensor.handle import Tensor


class unique_all_result(NamedTuple):
    """Distinct elements, where each is first, which one every element is, and how often each is there."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class unique_counts_result(NamedTuple):
    """Distinct elements, and how often each is there."""

    values: Tensor
    counts: Tensor


class unique_inverse_result(NamedTuple):
    """Distinct elements, and which one every element is."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> unique_all_result:
    """The distinct elements, their first indices, inverse indices and counts.

    >>> import genesis
    >>> genesis.array_api.unique_all(genesis.tensor([3, 1, 3])).indices
    tensor([1, 0])
    """
    return unique_all_result(*_made(x, *_distinct(x)))


def unique_counts(x: Tensor, /) -> unique_counts_result:
    """The distinct elements and their counts."""
    values, _, _, counts = _distinct(x)
    return unique_counts_result(*_made(x, values, counts))


def unique_inverse(x: Tensor, /) -> unique_inverse_result:
    """The distinct elements, and the indices that make the array of them."""
    values, _, inverse, _ = _distinct(x)
    return unique_inverse_result(*_made(x, values, inverse))


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements."""
    return _made(x, _distinct(x)[0])[0]
