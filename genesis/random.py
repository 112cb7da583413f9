"""Random tensors. Numbers come from a counter-based generator: element i of a draw is a function of (seed, counter, i)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Unpack

import numpy as np

from genesis.functions.comparison import broadcast_shapes
from genesis.functions.creation import LayoutOptions, as_shape, check_layout_options
from genesis.functions.overrides import routed_function
from genesis.functions.random_counts import bernoulli, binomial, multinomial, poisson
from genesis.functions.random_draws import drawn, drawn_like, drawn_pairs, draws, integers, stream
from genesis.functions.sequential_draws import permutation
from genesis.ir.annotations import Extents
from genesis.ir.dtypes import DType, as_dtype, get_default_dtype, int64, refuse_number
from genesis.ir.errors import ArgumentError, ArgumentTypeError, UnsupportedTypeError
from genesis.ops.registry import OPERATIONS
from genesis.runtime import rng
from genesis.runtime.devices import DeviceLike, device_of
from genesis.runtime.rng import Generator
from genesis.tensor.dispatch import call
from genesis.tensor.from_python import call_on, from_data
from genesis.tensor.handle import Tensor
from genesis.tensor.out import takes_out

__all__ = [
    "bernoulli", "binomial", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "multinomial", "normal", "poisson",
    "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "seed", "set_rng_state",
]
__dir__ = __all__.copy

initial_seed = rng.initial_seed
get_rng_state = rng.get_state
set_rng_state = rng.set_state
seed = rng.seed


def manual_seed(seed: int) -> None:
    """Start the random numbers of `seed` from the beginning: the same program draws the same numbers again.

    >>> genesis.manual_seed(0)
    >>> a = genesis.rand(3)
    >>> genesis.manual_seed(0)
    >>> bool((a == genesis.rand(3)).all())
    True
    """
    rng.manual_seed(int(seed))


def state_bytes(generator: Generator) -> Tensor:
    """A generator's state as bytes, which `set_state` and `set_rng_state` take too."""
    return from_data(np.frombuffer(generator.stored(), np.uint8))


Generator.get_state = state_bytes  # type: ignore[attr-defined]


@contextlib.contextmanager
def fork_rng(
    devices: object = None, enabled: bool = True, _caller: str = "fork_rng", _devices_kw: str = "devices",
    device_type: str = "cuda",
) -> Iterator[None]:
    """A context that restores the state of random numbers at its end; no effect if `enabled` is False.

    >>> genesis.manual_seed(0)
    >>> with genesis.random.fork_rng():
    ...     a = genesis.rand(3)
    >>> bool((a == genesis.rand(3)).all())
    True
    """
    state = rng.stored()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)


def _floats(
    name: str, kind: str, shape: Sequence[int], dtype: DType | None = None, device: DeviceLike = None,
    generator: Generator | None = None, requires_grad: bool = False, **options: Unpack[LayoutOptions],
) -> Tensor:
    if options:
        check_layout_options(name, options)
    numbers = drawn(kind, shape, _floating(name, dtype), device=device_of(device), generator=generator)
    return numbers.requires_grad_() if requires_grad else numbers


def _floating(name: str, dtype: DType | None) -> DType:
    dtype = as_dtype(name, dtype or get_default_dtype())
    if dtype.category < 2:
        raise UnsupportedTypeError(f"{name}: dtype must be floating, got {dtype.name}")
    return dtype


@takes_out
def rand(
    *extents: Extents, size: Extents | None = None, generator: Generator | None = None, dtype: DType | None = None,
    device: DeviceLike = None, requires_grad: bool = False, **options: Unpack[LayoutOptions],
) -> Tensor:
    """Uniform numbers in [0, 1): multiples of 2^-24, or 2^-53 in float64.

    `size` is ints or one tuple; `dtype` floating, by default the default float; `generator` defaults to
    the one of `manual_seed`. Raises TypeError for another dtype.

    >>> x = genesis.rand(2, 3)
    >>> x.shape, bool(((0 <= x) & (x < 1)).all())
    ((2, 3), True)
    """
    shape = as_shape("rand", extents if size is None else (size,))
    return _floats("rand", "uniform", shape, dtype, device, generator, requires_grad, **options)


@takes_out
def randn(
    *extents: Extents, size: Extents | None = None, generator: Generator | None = None, dtype: DType | None = None,
    device: DeviceLike = None, requires_grad: bool = False, **options: Unpack[LayoutOptions],
) -> Tensor:
    """Normal numbers, of mean 0 and variance 1 (Box and Muller, 1958).

    `size`, `generator` and `dtype` as in `rand`.

    >>> genesis.randn(2, 3, dtype=genesis.float64).dtype
    genesis.float64
    """
    shape = as_shape("randn", extents if size is None else (size,))
    return _floats("randn", "normal", shape, dtype, device, generator, requires_grad, **options)


@takes_out
def randint(
    low: Any = None, high: Any = None, size: Extents | None = None, *, generator: Generator | None = None,
    dtype: DType | None = None, device: DeviceLike = None, requires_grad: bool = False, **options: Unpack[LayoutOptions],
) -> Tensor:
    """Integers in [low, high); `randint(high, size)` starts at 0.

    `size` is an int or a tuple of ints. Raises ValueError unless low < high, TypeError without a size.

    >>> int(genesis.randint(5, (100,)).max()) < 5
    True
    """
    if options:
        check_layout_options("randint", options)
    target = device_of(device)
    if size is None:
        low, high, size = None, low, high
    if high is None:
        low, high = None, low
    low = 0 if low is None else low
    if size is None or high is None:
        raise TypeError("randint: wants (high, size) or (low, high, size)")
    if any([isinstance(bound.item() if isinstance(bound, Tensor) else bound, float | np.floating) for bound in (low, high)]):
        raise ArgumentTypeError(f"randint: bounds are integers, got {low!r:.20} and {high!r:.20}")
    if low >= high:
        raise ArgumentError(f"randint: low {low} must be less than high {high}")
    shape = as_shape("randint", (size,))
    drawn_ints = integers("randint", shape, dtype or int64, int(low), int(high), target, generator)
    return drawn_ints.requires_grad_() if requires_grad else drawn_ints


_rand_like, _randn_like = partial(_floats, "rand_like", "uniform"), partial(_floats, "randn_like", "normal")


@routed_function
def rand_like(
    input: Tensor, *, dtype: DType | None = None, device: DeviceLike = None, requires_grad: bool = False,
    generator: Generator | None = None, **options: Unpack[LayoutOptions],
) -> Tensor:
    """`rand` with the shape, dtype and device of `input`; for a sparse one, of its elements.

    >>> genesis.rand_like(genesis.zeros(2, 3)).shape
    (2, 3)
    """
    return drawn_like(_rand_like, input, options, dtype, device, generator=generator, requires_grad=requires_grad)


@routed_function
def randn_like(
    input: Tensor, *, dtype: DType | None = None, device: DeviceLike = None, requires_grad: bool = False,
    generator: Generator | None = None, **options: Unpack[LayoutOptions],
) -> Tensor:
    """`randn` with the shape, dtype and device of `input`; for a sparse one, of its elements.

    >>> genesis.randn_like(genesis.zeros(2, 3)).shape
    (2, 3)
    """
    settings: Any = {"generator": generator, "requires_grad": requires_grad}
    return drawn_like(_randn_like, input, options, dtype, device, _randn_in_pairs, **settings)


def _randn_in_pairs(shape: Sequence[int], dtype: DType, requires_grad: bool, **settings: Any) -> Tensor:
    """Normal numbers for tensors that PyTorch would not store in row-major order: PyTorch draws them in pairs."""
    return drawn_pairs(shape, dtype, **settings).to(dtype).requires_grad_(requires_grad)


@routed_function
def randint_like(
    input: Tensor, low: int | None = None, high: int | None = None, *, dtype: DType | None = None, device: DeviceLike = None,
    requires_grad: bool = False, generator: Generator | None = None, **options: Unpack[LayoutOptions],
) -> Tensor:
    """`randint` with the shape, dtype and device of `input`; `randint_like(input, high)` starts at 0.

    >>> genesis.randint_like(genesis.zeros(2), 3, 4)
    tensor([3., 3.])
    """
    if high is None:
        low, high = None, low
    if high is None:
        raise TypeError("randint_like: wants (input, high) or (input, low, high)")
    low = 0 if low is None else low
    settings: Any = {"generator": generator, "requires_grad": requires_grad}
    return drawn_like(
        lambda shape, **settings: randint(low, high, shape, **settings), input, options, dtype, device, **settings)


@routed_function
@takes_out
def normal(
    mean: float | Tensor = 0.0, std: float | Tensor = 1.0, size: Extents | None = None, *, generator: Generator | None = None,
    dtype: DType | None = None, device: DeviceLike = None, requires_grad: bool = False,
) -> Tensor:
    """Normal numbers with this mean and standard deviation: numbers together with `size`, or tensors.

    The gradient is zero. Raises TypeError if both are numbers and there is no size, ValueError for a negative `std`.

    >>> genesis.normal(0.0, 1.0, (2, 3)).shape
    (2, 3)
    """
    if std.dtype.is_complex if isinstance(std, Tensor) else std < 0:
        raise ArgumentError(f"normal: std is {std.dtype.name if isinstance(std, Tensor) else std}; want real numbers from 0 on")
    tensors = [one for one in (mean, std) if isinstance(one, Tensor)]
    if size is None:
        if not tensors:
            raise TypeError("normal: wants a size where mean and std are numbers")
        size = broadcast_shapes(*[one.shape for one in tensors]) if len(tensors) > 1 else tensors[0].shape
        dtype, device = dtype or tensors[0].dtype, tensors[0].device
    shape, dtype = as_shape("normal", (size,)), _floating("normal", dtype)
    parameters: Any = (0.0, 1.0) if tensors else (mean, std)
    result = drawn("normal", shape, dtype, *parameters, device=device_of(device), generator=generator)
    if tensors:
        result = (result * std + mean).to(dtype)
        if any([one.requires_grad for one in tensors]):
            result = call(OPERATIONS["with_value"], (result * 0, result))
    return result.detach().requires_grad_() if requires_grad else result


@takes_out
def randperm(
    n: int, *, generator: Generator | None = None, dtype: DType = int64, device: DeviceLike = None, requires_grad: bool = False,
    **options: Unpack[LayoutOptions],
) -> Tensor:
    """The integers 0 to n-1 in random order.

    >>> sorted(genesis.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    if options:
        check_layout_options("randperm", options)
    (n,) = as_shape("randperm", (n,))
    if dtype is not int64:
        refuse_number("randperm", n, as_dtype("randperm", dtype))
    target = device_of(device)
    words = stream(target, generator)
    if words is not None:
        return from_data(permutation(words, n), dtype, requires_grad)
    order = call_on(target, OPERATIONS["randperm"], (*draws(n, generator), n))
    order = order if dtype is int64 else order.to(dtype)
    return order.requires_grad_() if requires_grad else order


NOT_REPLAYABLE = ("manual_seed",)
