"""Writing into a tensor: copy_, fill_, random fills, masked fills, and `.data`."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from genesis.functions.comparison import finfo
from genesis.functions.memory_order import is_row_major, memory_axes
from genesis.functions.overrides import overridable_method, routed_method
from genesis.functions.random_draws import are_counted, chosen, drawn, drawn_pairs, in_order, integers, stream
from genesis.ir.annotations import AnyFunction
from genesis.ir.dtypes import DType, bool_, float64, refuse_number
from genesis.ir.errors import ArgumentError, ArgumentTypeError
from genesis.ops.registry import OPERATIONS
from genesis.runtime.deferred import deferred
from genesis.runtime.rng import Generator
from genesis.tensor.dispatch import array_of, call
from genesis.tensor.first_call import number_in
from genesis.tensor.from_python import filled, from_data
from genesis.tensor.handle import Operand, Tensor, attribute
from genesis.tensor.in_place import rederived, write
from genesis.tensor.views import detach, move_storage, view
from genesis.tensor.writes_in_memory import known_writes, set_in_memory
from genesis.tracing.state import thread_state
from genesis.tracing.tensor_state import Versions

if TYPE_CHECKING:
    from genesis.functions.draw_programs import draw_program
else:
    draw_program = deferred("genesis.functions.draw_programs", "draw_program")

_OFTEN, _MOST = 8, 1024  # draws of a kind and size before it has a program of its own; such sizes that are known


@routed_method
def copy_(self: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """Write `source`, broadcast and converted, into this tensor."""
    return _fills.call(self, ..., source if isinstance(source, Tensor) else from_data(source), None)  # type: ignore[no-any-return]


@routed_method
def fill_(self: Tensor, value: Operand) -> Tensor:
    """Write `value` everywhere."""
    if isinstance(value, Tensor):
        if value.shape:
            raise ArgumentError(f"fill_: value must be a number or a 0-d tensor, got shape {value.shape}")
        return self.copy_(value)
    if isinstance(value, tuple):  # which would be a draw
        raise ArgumentTypeError("fill_: value must be a number or a 0-d tensor, got a tuple")
    return _fills.call(self, ..., value, None)  # type: ignore[no-any-return]


@routed_method
def zero_(self: Tensor) -> Tensor:
    """Write zeros everywhere."""
    return _fills.call(self, ..., 0, None) if self.__class__ is Tensor else self.fill_(0)  # type: ignore[no-any-return]


def _filled(tensor: Tensor, index: Any, value: Operand | tuple[Any, ...], _: str | None) -> Tensor:
    """The tensor, with the values of another one, a number everywhere or a draw, by Python."""
    if isinstance(value, Tensor):
        return _copied(tensor, value)
    if isinstance(value, tuple):  # of a draw
        kind, factor, shift, *numbers = value
        return tensor if _is_drawn_at_once(tensor, kind, index, factor, shift) else _drawn(tensor, kind, *numbers)
    if tensor.__class__ is Tensor and tensor._base is None and tensor._array.memory is None:  # in place of the pending value
        made = filled(value, tensor.shape, tensor.dtype, tensor.device, tensor)
        return tensor if made is tensor else write(tensor, made)
    if set_in_memory(tensor, ..., value):
        return tensor
    target = tensor
    if tensor._layout is not None:
        for axis, (extent, stride) in enumerate(zip(tensor.shape, tensor._layout.strides, strict=True)):
            if stride == 0 and extent > 1:  # one element for the whole axis, written once
                target = view(target, "narrow", axis, 0, 1)
    write(target, filled(value, target.shape, tensor.dtype, tensor.device))
    return tensor


def _copied(tensor: Tensor, source: Tensor) -> Tensor:
    if source.__class__ is Tensor and source._array.memory is not None and source.ndim <= tensor.ndim and set_in_memory(
            tensor, ..., source):
        return tensor
    if (device := tensor.device) is not source.device:
        source = source.to(device)
    value = call(OPERATIONS["to_dtype"], (source, tensor.dtype)) if source.dtype is not tensor.dtype else source.clone()
    if value.shape != tensor.shape:
        value = call(OPERATIONS["expand"], (value, tensor.shape)).clone()
    if array_of(value).node.differentiable and array_of(tensor).node.differentiable:  # else `write` does it
        value = call(OPERATIONS["overwrite"], (tensor, value))
    return write(tensor, value)


class _DrawPrograms(dict[tuple[str, DType, int], AnyFunction | None]):
    """`draw_program` by its arguments: None, and not kept, until these have come often, as programs of many sizes cost more."""

    def __init__(self) -> None:
        self.asked: Counter[tuple[str, DType, int]] = Counter()

    def __missing__(self, key: tuple[str, DType, int]) -> AnyFunction | None:
        if len(self.asked) >= _MOST:
            self.clear()
            self.asked.clear()
        self.asked[key] += 1
        if self.asked[key] < _OFTEN:
            return None
        self[key] = draw_program(*key)
        return self[key]


_programs = _DrawPrograms()
_fills = known_writes(_filled)


@overridable_method
def masked_fill(input: Tensor, mask: Tensor, value: Operand) -> Tensor:
    """The tensor with `value` where `mask` (broadcast) holds.

    >>> genesis.masked_fill(genesis.tensor([1, 2, 3]), genesis.tensor([True, False, True]), 0)
    tensor([0, 2, 0])
    """
    if mask.dtype.name != "bool":
        raise ArgumentTypeError(f"masked_fill: mask must be bool, got {mask.dtype.name}")
    if isinstance(value, Tensor) and value.shape:
        raise ArgumentError(f"masked_fill: value must be a number or a 0-d tensor, got shape {value.shape}")
    refuse_number("masked_fill", value, input.dtype)
    if isinstance(value, Tensor) and value.dtype.is_complex and not input.dtype.is_complex:
        raise ArgumentTypeError(f"masked_fill: value is {value.dtype.name}, the tensor {input.dtype.name}; take its real part")
    result: Tensor = call(OPERATIONS["where"], (mask, value, input))
    return result if result.dtype is input.dtype else result.to(input.dtype)


@routed_method
def masked_fill_(self: Tensor, mask: Tensor, value: Operand) -> Tensor:
    """Write `value` where `mask` (broadcast) holds."""
    return write(self, self.masked_fill(mask, value))


def _axes(tensor: Tensor) -> list[int]:
    """The axes in the order in which numbers are drawn: PyTorch's memory order."""
    return memory_axes(tensor) if stream(tensor.device) is not None else []


def _draw_into(tensor: Tensor, kind: str, first: Any, second: Any, generator: Generator | None) -> Tensor:
    """Fill a tensor with a draw: at once in memory that it alone owns (see `draw_program`), else by a program that repeats."""
    is_pending = tensor._base is None and tensor._array is not None and tensor._array.memory is None
    is_counted = generator is None and thread_state.recorder is None and are_counted()
    if is_pending or not is_counted or (program := _programs[kind, tensor.dtype, tensor.numel()]) is None:
        return _drawn(tensor, kind, first, second, generator)
    factor, shift = (second - first, first) if kind == "uniform" else (second, first)
    return _fills.call(tensor, program, (kind, float(factor), float(shift), first, second), "draw")  # type: ignore[no-any-return]


def _is_drawn_at_once(tensor: Tensor, kind: str, program: AnyFunction, factor: float, shift: float) -> bool:
    """Draw into memory that a tensor gets of its own, if it had values in other memory; whether that was done. Where it comes
    to that again and again, as programs write what was drawn, draws are better parts of these."""
    key = kind, tensor.dtype, tensor.numel()
    if thread_state.eager or tensor._array.memory is None or _programs.asked[key] > 4 * _OFTEN:
        return False
    _programs.asked[key] += 1
    return set_in_memory(
        tensor, ..., None, lambda memory, dtype: memory.strides is None and program(memory, factor, shift) is None)


def _drawn(tensor: Tensor, kind: str, first: Any, second: Any, generator: Generator | None = None) -> Tensor:
    """Fill a tensor with random numbers of the operation `kind`, or trials of a probability; tensor parameters are read."""
    shape, dtype, device = tensor.shape, tensor.dtype, tensor.device
    settings: dict[str, Any] = {"device": device, "generator": generator}
    if kind == "bernoulli":
        return write(tensor, in_order(partial(chosen, p=second, dtype=dtype, **settings), shape, _axes(tensor)))
    if dtype.category < 2:
        raise ArgumentTypeError(f"{kind}_: wants a floating or complex tensor, got {dtype.name}")
    numbers = [number.item() if isinstance(number, Tensor) else number for number in (first, second)]
    if stream(device) is None:
        made = drawn(kind, shape, dtype, *numbers, **settings, target=tensor)
        return tensor if made is tensor else write(tensor, made)
    return write(tensor, in_order(lambda size: drawn(kind, size, dtype, *numbers, **settings), shape, memory_axes(tensor)))


@routed_method
def uniform_(self: Tensor, low: float = 0.0, high: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with random numbers of [low, high). Raises ValueError unless low <= high."""
    if not low <= high or (high - low > 65504 and self.is_floating_point() and high - low > finfo(self.dtype).max):
        raise ArgumentError(f"uniform_: low is {low} and high {high}; want low <= high, and a range that the dtype holds")
    return _draw_into(self, "uniform", low, high, generator)


@routed_method
def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with normal random numbers. Raises ValueError for a negative `std`."""
    if std < 0:
        raise ArgumentError(f"normal_: std is {std}; want 0 or more")
    if stream(self.device) is None or self.dtype.is_complex or is_row_major(self):
        return _draw_into(self, "normal", mean, std, generator)
    pairs = in_order(lambda shape: drawn_pairs(shape, self.dtype, self.device, generator), self.shape, _axes(self))
    return write(self, (pairs * std + mean).to(self.dtype))


@routed_method
def bernoulli_(self: Tensor, p: float | Tensor = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with 1 with probability `p`, a number or a tensor, 0 otherwise."""
    if not isinstance(p, Tensor):
        if not 0 <= p <= 1:
            raise ArgumentError(f"bernoulli_: p is {p}; want 0 to 1")
        return _draw_into(self, "bernoulli", 0.0, p, generator)
    dtype = p.dtype if p.is_floating_point() else None
    return self.copy_(drawn("uniform", self.shape, dtype, device=self.device, generator=generator) < p)


@routed_method
def random_(self: Tensor, *bounds: Any, generator: Generator | None = None, **named: Any) -> Tensor:
    """Fill with random integers: of [0, to) by `random_(to)`, of [from, to) by `random_(from, to)`.

    Without `to`, or with None, up to the dtype's maximum, or the largest run that a float represents exactly.
    """
    count = len(bounds)
    bounds = (*bounds, *[named[name] for name in ("from", "to") if name in named])
    if named.keys() not in (set(), {"to"}, {"from", "to"}) or len(bounds) > 2:
        raise ArgumentTypeError(f"random_: got {count} bounds and {[*named]}; want at most from and to")
    low, high = bounds if len(bounds) == 2 else (0, *bounds, None)[:2]
    high = _end(self) if high is None else high
    if low >= high:
        raise ArgumentError(f"random_: low is {low} and high {high}; want low < high")
    low, high = (operator.index(number_in("random_", "a bound", bound)) for bound in (low, high))

    def draw(shape: Sequence[int]) -> Tensor:
        return integers("random_", shape, self.dtype, low, high, self.device, generator)

    return write(self, in_order(draw, self.shape, _axes(self)))


def _end(tensor: Tensor) -> int:
    """The upper end of the integers drawn for its dtype: its maximum, or the largest run that a float represents exactly."""
    if not tensor.is_floating_point():
        return 2 if tensor.dtype is bool_ else 2 ** (8 * tensor.element_size() - tensor.dtype.is_signed)
    return int(2 / finfo(tensor.dtype).eps) + 1  # type: ignore[no-any-return]


# ---- other distributions, from uniform numbers ----
def _even(name: str, tensor: Tensor, generator: Generator | None, whole: bool = False) -> Tensor:
    """Uniform numbers in (0, 1), in the tensor's compute dtype."""
    if not (whole or tensor.is_floating_point()):
        raise ArgumentTypeError(f"{name}: wants a floating tensor, got {tensor.dtype.name}")
    if stream(tensor.device, generator) is not None:
        return drawn("uniform", tensor.shape, float64, device=tensor.device, generator=generator)
    dtype = tensor.dtype.compute if tensor.is_floating_point() else float64
    least = 2.0**-54 if dtype is float64 else 2.0**-25  # half the step between draws
    return drawn("uniform", tensor.shape, dtype, device=tensor.device, generator=generator).clamp(min=least)


@routed_method
def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with random numbers of the density lambd * exp(-lambd * x)."""
    if lambd <= 0:
        raise ArgumentError(f"exponential_: lambd is {lambd}; want it above 0")
    return self.copy_((-_even("exponential_", self, generator)).log1p() / -lambd)


@routed_method
def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with the number of trials up to the first success of probability `p`: 1, 2, .."""
    if not 0 < p < 1:
        raise ArgumentError(f"geometric_: p is {p}; want it between 0 and 1")
    return self.copy_((_even("geometric_", self, generator, whole=True).log() / math.log1p(-p)).ceil())


@routed_method
def log_normal_(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with exp(z), z normal with this mean and standard deviation."""
    if std <= 0 or not self.is_floating_point():
        raise ArgumentError(f"log_normal_: std is {std}, the dtype {self.dtype.name}; want std above 0 and a floating tensor")
    drawn_wide = drawn_pairs(self.shape, self.dtype.compute, self.device, generator)
    return self.copy_((drawn_wide * std + mean).exp())


@routed_method
def cauchy_(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with random numbers of the density sigma / (pi * ((x - median)^2 + sigma^2))."""
    if sigma <= 0:
        raise ArgumentError(f"cauchy_: sigma is {sigma}; want it above 0")
    return self.copy_(((_even("cauchy_", self, generator) - 0.5) * math.pi).tan() * sigma + median)


@attribute
def data(self: Tensor) -> Tensor:
    """The tensor without gradient, sharing its storage; assigning to it replaces the values.

    Unlike with `detach()`, backward does not detect writes through it, even if it needs the old values.

    >>> x = genesis.ones(2, requires_grad=True)
    >>> x.data -= 0.25
    >>> x
    tensor([0.7500, 0.7500], requires_grad=True)
    """
    result = detach(self)
    result._versions = Versions()
    return result


def _set_data(self: Tensor, value: Tensor) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"data: wants a Tensor, got {type(value).__name__}")
    if self.requires_grad and value.dtype.category < 2:
        raise ArgumentTypeError(f"data: the tensor requires a gradient; want a floating tensor, got {value.dtype.name}")
    if self.is_set_to(value):  # `p.data -= step` has already written
        return
    derived = None if self.is_leaf else rederived(self, detach(value))  # a result keeps its derivation
    move_storage(self, value)
    if derived is not None:
        self._array, self._requires_grad = derived._array, True


Tensor.data = data.setter(_set_data)  # type: ignore[method-assign, assignment]
