"""The Kullback-Leibler divergence: a function of two distributions, registered for pairs of classes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from genesis.distributions.distribution import Distribution
from genesis.ir.replayable import replayable, replayable_module
from genesis.tensor.handle import Tensor

__all__ = ["kl_divergence", "register_kl"]

Divergence = Callable[[Any, Any], Tensor]
_KL_REGISTRY: dict[tuple[type, type], Divergence] = {}
_KL_MEMOIZE: dict[tuple[type, type], Divergence] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Divergence], Divergence]:
    """Decorator: the divergence of distributions of these classes, or of subclasses that have none closer to them."""
    for kind in (type_p, type_q):
        if not isinstance(kind, type):  # of Distribution or of what a library derives its own from beside it
            raise TypeError(f"register_kl: wants classes of distributions, got {kind!r}")

    def register(function: Divergence) -> Divergence:
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return register


def register_rows(divergences: Mapping[tuple[type, type], Divergence]) -> None:
    """Register the divergences of a table, by their pairs of classes."""
    for pair, divergence in divergences.items():
        register_kl(*pair)(replayable(divergence))


def _dispatch_kl(type_p: type, type_q: type) -> Divergence:
    """The function of the closest pair of base classes; the left one decides where two are incomparable."""
    pairs = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not pairs:
        raise NotImplementedError(f"kl_divergence: none is registered for {type_p.__name__} and {type_q.__name__}")

    def distance(kinds: tuple[type, type]) -> tuple[int, int]:
        return type_p.__mro__.index(kinds[0]), type_q.__mro__.index(kinds[1])

    left = min(pairs, key=distance)
    right = min(pairs, key=lambda kinds: distance(kinds)[::-1])
    chosen = _KL_REGISTRY[left]
    if chosen is not _KL_REGISTRY[right]:
        warnings.warn(
            f"kl_divergence: ambiguous for {type_p.__name__} and {type_q.__name__}; register that pair. The one of "
            f"{left[0].__name__} and {left[1].__name__} is taken", RuntimeWarning, stacklevel=3,
        )
    return chosen


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The mean of log p(x) - log q(x) over x of p, for each distribution of the batch.

    Raises NotImplementedError where none is registered for the two classes.

    >>> d = genesis.distributions
    >>> d.kl_divergence(d.Normal(0.0, 1.0), d.Normal(1.0, 1.0))
    tensor(0.5000)
    """
    kinds = type(p), type(q)
    function = _KL_MEMOIZE.get(kinds)
    if function is None:
        function = _KL_MEMOIZE[kinds] = _dispatch_kl(*kinds)
    return function(p, q)


replayable_module(__name__, but=("register_kl", "register_rows"))
