"""Random integers of distributions whose parameters are tensors."""

from __future__ import annotations

from math import inf

from genesis.functions.comparison import broadcast_shapes
from genesis.functions.overrides import routed_function, routed_method
from genesis.functions.random_draws import chosen, drawn, drawn_by_host, stream
from genesis.ir.dtypes import float32, float64
from genesis.ir.errors import ArgumentError
from genesis.ops.registry import OPERATIONS
from genesis.runtime.rng import Generator
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor
from genesis.tensor.out import takes_out
from genesis.tracing.recording_hooks import reads_forbidden


@routed_method
@takes_out
def bernoulli(input: Tensor, p: float | None = None, *, generator: Generator | None = None) -> Tensor:
    """1 with the probability that each element of `input` gives (with the probability `p`, if given), 0 otherwise.

    >>> genesis.bernoulli(genesis.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    if p is not None:
        if not 0 <= p <= 1:
            raise ArgumentError(f"bernoulli: p is {p}; want 0 to 1")
        return chosen(input.shape, p, input.dtype, input.device, generator)
    kind = float64 if input.dtype is float64 else float32
    return (drawn("uniform", input.shape, kind, device=input.device, generator=generator) < input).to(input.dtype)


def _counts(name: str, generator: Generator | None, *parameters: Tensor) -> Tensor:
    """Counts of the row `name`, without a gradient."""
    for parameter in parameters:
        if not reads_forbidden() and not bool(((parameter >= 0) & (parameter < inf)).all()):
            raise ArgumentError(f"{name}: a parameter is infinite, NaN or negative")
    shape = broadcast_shapes(*[parameter.shape for parameter in parameters])
    return drawn_by_host(name, shape, *[parameter.detach() for parameter in parameters], generator=generator)


@routed_function
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Counts of the Poisson distribution with the rates `input`, in its shape and dtype.

    The gradient is zero. Raises ValueError for a rate that is negative or not finite.

    >>> genesis.poisson(genesis.zeros(3))
    tensor([0., 0., 0.])
    """
    return _counts("poisson", generator, input) + input * 0


def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """The number of successes in `count` trials with probability `prob`, which broadcast; in their dtype.

    The gradient is zero. Raises ValueError for a negative count or an invalid probability.

    >>> genesis.binomial(genesis.tensor([3.0, 3.0]), genesis.tensor([0.0, 1.0]))
    tensor([0., 3.])
    """
    if not reads_forbidden() and bool((prob > 1).any()):
        raise ArgumentError("binomial: prob has elements above 1; want probabilities")
    return _counts("binomial", generator, count, prob) + (count + prob) * 0


@routed_method
@takes_out
def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None) -> Tensor:
    """Indices drawn with the (unnormalized) probabilities in the rows of `input`, (n,) or (rows, n).

    Without `replacement`, the winners of exponential races (Efraimidis and Spirakis, 2006). Raises ValueError for other
    shapes, for invalid probabilities, for rows of zeros, and for more samples than positions to draw.

    >>> genesis.multinomial(genesis.tensor([0.0, 3.0, 0.0]), 2, replacement=True)
    tensor([1, 1])
    """
    weights = input.detach()
    if not weights.is_floating_point():
        raise TypeError(f"multinomial: probabilities must be floating, got {input.dtype.name}")
    if weights.ndim not in (1, 2):
        raise ArgumentError(f"multinomial: probabilities must be 1-d or 2-d, got shape {input.shape}")
    if num_samples < 1 or (not replacement and num_samples > weights.shape[-1]):
        raise ArgumentError(
            f"multinomial: cannot draw {num_samples} of {weights.shape[-1]}; want 1 or more, and replacement=True for more "
            "than there are")
    p = weights.double()
    if not reads_forbidden() and not bool((((p >= 0) & (p < inf)).all(-1) & (p.sum(-1) > 0)).all()):
        raise ArgumentError("multinomial: a row of probabilities has infinite, NaN or negative ones, or zeros alone")
    is_pytorchs = stream(p.device, generator) is not None
    weights = weights if is_pytorchs else p
    if replacement and (num_samples > 1 or not is_pytorchs):
        edges = weights.cumsum(-1)
        edges = (edges / edges[..., -1:]).double()
        u = drawn("uniform", (*p.shape[:-1], num_samples), float64, device=p.device, generator=generator)
        return call(OPERATIONS["searchsorted"], (edges, u), {"right": not is_pytorchs})  # type: ignore[no-any-return]
    if is_pytorchs:
        race = weights / weights.new_empty(weights.shape).exponential_(generator=generator)
        return race.argmax(-1, keepdim=True) if num_samples == 1 else race.topk(num_samples, -1).indices
    race = -(1 - drawn("uniform", p.shape, float64, device=p.device, generator=generator)).log() / p.clamp(min=1e-300)
    return race.topk(num_samples, -1, False).indices
