"""Random draws: ranges reserved in the generator's stream, and tensors drawn from them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from genesis.functions import sequential_draws
from genesis.functions.comparison import finfo, iinfo
from genesis.functions.creation import LayoutOptions
from genesis.functions.memory_order import memory_axes
from genesis.functions.sequential_rejection import SAMPLES
from genesis.ir.annotations import AnyFunction
from genesis.ir.dtypes import DType, bool_, float64, get_default_dtype
from genesis.ir.errors import ArgumentError
from genesis.ir.shapes import numel
from genesis.ops.registry import OPERATIONS, PRIMITIVES
from genesis.runtime import rng
from genesis.runtime.devices import CPU, Device, DeviceLike, device_of
from genesis.runtime.mersenne_twister import MersenneTwister
from genesis.runtime.rng import SEED, Generator
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.dispatch import call
from genesis.tensor.from_python import call_on
from genesis.tensor.handle import Tensor, from_values
from genesis.tracing.recording_hooks import numbers_drawn, reads_forbidden, refuse
from genesis.tracing.state import thread_mode, thread_state
from genesis.tracing.trace import Array


def stream(device: Device = CPU, generator: Generator | None = None) -> MersenneTwister | None:
    """The stream that draws in PyTorch's order; None if numbers are a function of seed and counter.

    In compiled functions and transforms they always are, because a replay draws without the host.
    """
    if not Generator.in_pytorchs_order or device.type != "cpu" or reads_forbidden():
        return None
    _of_all_examples(0)  # raises if draws are forbidden
    return (generator or rng.default_generator).twister()


def are_counted() -> bool:
    """Whether numbers of the default generator are a function of seed and counter, and the same for no vmapped examples."""
    return not (Generator.in_pytorchs_order or thread_state.mapped)


@contextlib.contextmanager
def mapped(randomness: str, extent: int, examples: Sequence[Array] = ()) -> Iterator[None]:
    """Context of a function vmapped over `extent` examples: "error" forbids draws, "different" reserves numbers for all."""
    levels, examples = (*thread_state.mapped, (randomness, extent)), (*thread_state.examples, *examples)
    with thread_mode("mapped", levels), thread_mode("examples", examples):
        yield


def is_of_an_example(array: Array) -> bool:
    """Whether an array is computed from an example of a vmapped function that is running, or from numbers drawn there."""
    return bool(thread_state.examples) and is_computed_from(array, thread_state.examples, or_drawn=True)


def is_shared_by_examples(array: Array) -> bool:
    """Whether a vmapped function is running, and a pending array is the same for all of its examples."""
    return bool(thread_state.examples) and array.memory is None and not is_of_an_example(array)


def is_computed_from(array: Array, examples: Sequence[Array], or_drawn: bool = False) -> bool:
    """Whether an array is computed from one of these, which are of the same trace, or from random numbers if `or_drawn`."""
    trace = array.trace
    wanted = {example.index for example in examples if example.trace is trace}
    if trace is None or not wanted:
        return False
    waiting, met = [array.index], set()
    while waiting:
        index = waiting.pop()
        if index not in met:
            node = trace.nodes[index]
            if index in wanted or (or_drawn and PRIMITIVES[node.op].draws):
                return True
            met.add(index)
            waiting += node.inputs
    return False


def _of_all_examples(count: int) -> int:
    for randomness, extent in thread_state.mapped:
        if randomness == "error":
            raise RuntimeError(
                "vmap: the function draws random numbers; want randomness='different' for each example's own, or 'same'"
            )
        count *= extent if randomness == "different" else 1
    return count


def draws(count: int, generator: Generator | None = None) -> tuple[int, int]:
    """(seed, start of the counter) of `count` fresh numbers, as signed 64-bit integers; from `generator`, if given."""
    count = _of_all_examples(count) if thread_state.mapped else count
    if generator is not None:
        refuse("numbers are drawn from a generator of the call's own")
    source = generator or rng.default_generator
    start, seed = source.reserve(count), source.words[SEED]
    recorded = numbers_drawn(start) if generator is None and thread_state.recorder is not None else None
    return recorded or (seed - (seed >> 63 << 64), start - (start >> 63 << 64))


def drawn_like(
    draw: AnyFunction, input: Tensor, options: LayoutOptions, dtype: DType | None, device: DeviceLike,
    scattered: AnyFunction | None = None, **settings: Any
) -> Tensor:
    """`draw` with the shape, dtype and device of `input`; for a sparse or nested one, new elements at its positions.

    `scattered` draws for tensors that PyTorch would not store in row-major order, if that differs.
    """
    settings |= {"dtype": dtype or input.dtype, "device": device_of(device or input.device)}
    if input.__class__ is not Tensor and isinstance(input, CompositeTensor) and options.get("layout") in (None, input.layout):
        return input.drawn(lambda shape: draw(shape, **settings))  # type: ignore[no-any-return]
    if stream(settings["device"]) is None or isinstance(input, CompositeTensor):
        return draw(input.shape, **settings, **options)  # type: ignore[no-any-return]
    axes = memory_axes(input)
    if scattered is not None and axes != sorted(axes):
        return in_order(lambda shape: scattered(shape, **settings), input.shape, axes)
    return in_order(lambda shape: draw(shape, **settings, **options), input.shape, axes)


def drawn(
    kind: str, shape: Sequence[int], dtype: DType | None, *parameters: float, device: Device = CPU,
    generator: Generator | None = None, target: Tensor | None = None,
) -> Tensor:
    """Random numbers of the operation `kind`: uniform, normal or randint; complex ones have random parts. If they are the
    `target`, that has taken them already.
    """
    shape, dtype = tuple(shape), dtype or get_default_dtype()
    if dtype.category == 3:
        return _of_parts(kind, shape, dtype, *parameters, device=device, generator=generator)
    words = stream(device, generator)
    if words is not None:
        kinds = sequential_draws.KINDS
        numbers = kinds[kind](words, numel(shape), dtype, *parameters)
        return from_values(numbers.reshape(shape), dtype, device)
    arguments = *draws(numel(shape), generator), shape, dtype, *parameters
    return call_on(device, OPERATIONS[kind], arguments, target)


@cache
def _range(dtype: DType) -> tuple[float, float]:
    """The least and the largest number of a dtype."""
    limits: Any = None if dtype is bool_ else finfo(dtype) if dtype.category > 1 else iinfo(dtype)
    return (0, 1) if limits is None else (limits.min, limits.max)


def integers(
    name: str, shape: Sequence[int], dtype: DType, low: int, high: int, device: Device = CPU, generator: Generator | None = None
) -> Tensor:
    """Random integers in [low, high). Raises ValueError for bounds outside the range of `dtype`."""
    least, most = _range(dtype)
    if low < least or high - 1 > most:
        raise ArgumentError(f"{name}: integers of [{low}, {high}) in {dtype.name}; want those from {least} to {most}")
    return drawn("randint", shape, dtype, low, high, device=device, generator=generator)


def _of_parts(
    kind: str, shape: tuple[int, ...], dtype: DType, *parameters: float, device: Device, generator: Generator | None
) -> Tensor:
    """Complex numbers with random parts; normal parts have half the variance each. As in PyTorch, a mean applies to both."""
    if kind == "normal":
        mean, std = parameters or (0.0, 1.0)
        parameters = mean, std * 0.5**0.5
    parts = drawn(kind, (*shape, 2), dtype.real, *parameters, device=device, generator=generator)
    return call(OPERATIONS["view_as_complex"], (parts,))  # type: ignore[no-any-return]


def drawn_pairs(shape: Sequence[int], dtype: DType, device: Device, generator: Generator | None = None) -> Tensor:
    """Normal numbers; in PyTorch's order, float64 ones drawn in pairs."""
    words = stream(device, generator)
    if words is None:
        return drawn("normal", shape, dtype, device=device, generator=generator)
    return from_values(sequential_draws.normal_pairs(words, numel(tuple(shape))).reshape(shape), float64, device)


def chosen(shape: Sequence[int], p: float, dtype: DType, device: Device = CPU, generator: Generator | None = None) -> Tensor:
    """1 with the probability `p`, 0 otherwise."""
    words = stream(device, generator)
    if words is not None:
        return from_values(sequential_draws.trials(words, numel(tuple(shape)), p).reshape(shape), dtype, device)
    return (drawn("uniform", shape, dtype.compute, device=device, generator=generator) < p).to(dtype)  # type: ignore[no-any-return]


def kept_factors(shape: Sequence[int], p: float, dtype: DType, axes: Sequence[int] = ()) -> Tensor:
    """Dropout's factors, drawn in sequence: 0 with the probability `p`, else 1 / (1 - p).

    They are drawn along these `axes`, from the outermost to the innermost: see `memory_order`.
    """
    return in_order(lambda extents: chosen(extents, 1 - p, dtype) / (1 - p if p < 1 else 1), shape, axes)


def in_order(draw: AnyFunction, shape: Sequence[int], axes: Sequence[int]) -> Tensor:
    """`draw` for a shape, numbers in the order of `axes` from the outermost to the innermost; row-major without them."""
    if not axes or [*axes] == [*range(len(shape))]:
        return draw(shape)  # type: ignore[no-any-return]
    return draw([shape[axis] for axis in axes]).permute([axes.index(axis) for axis in range(len(axes))])  # type: ignore[no-any-return]


def drawn_by_host(name: str, shape: Sequence[int], *parameters: Tensor, generator: Generator | None = None) -> Tensor:
    """Random numbers of the row `name` in this shape, to which the parameters are expanded."""
    spread = [p.expand(tuple(shape)) for p in parameters]
    words = stream(spread[0].device, generator)
    if words is not None:
        numbers = SAMPLES[name](words, *[p.detach().numpy() for p in spread])
        return call(OPERATIONS[name], (*spread, from_values(numbers, float64), 0))  # type: ignore[no-any-return]
    return call(OPERATIONS[name], (*spread, *draws(numel(tuple(shape)), generator)))
