"""Quantisation while training: numbers rounded as it does, and observers, modules that track the range of their input."""

from __future__ import annotations

import enum
import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Any, ClassVar

from genesis.functions.selection import where
from genesis.ir.dtypes import DType, float32, int8, int32, int64, uint8
from genesis.ir.errors import ArgumentError
from genesis.ir.library import Library
from genesis.nn.module import Module
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import call
from genesis.tensor.from_python import from_data
from genesis.tensor.handle import Tensor
from genesis.tensor.views import detach
from genesis.tracing.state import grad_mode

__all__ = [
    "MinMaxObserver", "MovingAverageMinMaxObserver", "MovingAveragePerChannelMinMaxObserver", "NoopObserver",
    "ObserverBase", "PerChannelMinMaxObserver", "PlaceholderObserver", "default_observer",
    "default_per_channel_weight_observer", "default_weight_observer", "fake_quantize_per_channel_affine",
    "fake_quantize_per_tensor_affine", "per_channel_affine", "per_channel_symmetric", "per_tensor_affine",
    "per_tensor_symmetric", "qscheme",
]


class qscheme(enum.Enum):
    """A quantisation scheme: one scale or one per channel, around 0 or around a zero point."""

    per_tensor_affine = enum.auto()
    per_tensor_symmetric = enum.auto()
    per_channel_affine = enum.auto()
    per_channel_symmetric = enum.auto()

    def __repr__(self) -> str:
        return f"{Library.name}.{self.name}"

    __str__ = __repr__


per_tensor_affine, per_tensor_symmetric, per_channel_affine, per_channel_symmetric = qscheme


def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Tensor | float, zero_point: Tensor | int, quant_min: int, quant_max: int
) -> Tensor:
    """`(clamp(round(input / scale) + zero_point, quant_min, quant_max) - zero_point) * scale`.

    The gradient is that of the input where nothing is clamped, and 0 elsewhere. Raises ValueError for an empty range.

    >>> genesis.ao.quantization.fake_quantize_per_tensor_affine(genesis.tensor([0.12, 9.0]), 0.1, 0, 0, 15)
    tensor([0.1000, 1.5000])
    """
    scale = scale.reshape(()) if isinstance(scale, Tensor) else scale
    zero_point = zero_point.reshape(()) if isinstance(zero_point, Tensor) else zero_point
    return _fake_quantized("fake_quantize_per_tensor_affine", input, scale, zero_point, quant_min, quant_max)


def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """As `fake_quantize_per_tensor_affine`, with a scale and a zero point for each index of `axis`.

    >>> x, scale, zero = genesis.tensor([[0.12, 0.17], [0.12, 0.17]]), genesis.tensor([0.1, 0.5]), genesis.tensor([0, 0])
    >>> genesis.ao.quantization.fake_quantize_per_channel_affine(x, scale, zero, 0, 0, 15)
    tensor([[0.1000, 0.2000],
            [0.0000, 0.0000]])
    """
    if scale.shape != (input.shape[axis],) or zero_point.shape != scale.shape:
        raise ArgumentError(
            f"fake_quantize_per_channel_affine: scale {scale.shape} and zero_point {zero_point.shape} for axis {axis} of "
            f"{input.shape}; want ({input.shape[axis]},)")
    shape = [1] * input.ndim
    shape[axis] = -1
    return _fake_quantized(
        "fake_quantize_per_channel_affine", input, scale.reshape(shape), zero_point.reshape(shape), quant_min, quant_max)


def _fake_quantized(
    name: str, input: Tensor, scale: Tensor | float, zero_point: Tensor | int, quant_min: int, quant_max: int
) -> Tensor:
    if not quant_min <= quant_max:
        raise ArgumentError(f"{name}: the range is {quant_min} to {quant_max}; want `quant_min` to be less than `quant_max`")
    with grad_mode(False):
        steps = (detach(input) * (1.0 / scale)).round() + zero_point
        value = (steps.clamp(quant_min, quant_max) - zero_point) * scale
        inside = (steps >= quant_min) & (steps <= quant_max)
    kept = where(inside, input, detach(input))  # has the gradient, but not the value
    return call(OPERATIONS["with_value"], (kept, value))  # type: ignore[no-any-return]


_RANGES = {int8: (-128, 127), uint8: (0, 255), int32: (-(1 << 31), (1 << 31) - 1)}
EPS = 2.0**-23  # the least scale


class _WithArguments:
    """A factory of modules: `with_args` binds further arguments."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self.p = make

    def __call__(self, *args: Any, **options: Any) -> Any: return self.p(*args, **options)
    def __repr__(self) -> str: return repr(self.p)

    def with_args(self, **options: Any) -> _WithArguments:
        """The function with these arguments."""
        return _WithArguments(functools.partial(self.p, **options))


def takes_sizes(module: Module, *names: str) -> None:
    """Let buffers take their sizes from a loaded state dict: they have a number for each observed channel."""
    module.register_load_state_dict_pre_hook(functools.partial(_take_sizes, names))


def _take_sizes(names: Iterable[str], module: Module, state: Mapping[str, Any], prefix: str, *others: Any) -> None:
    for name in names:
        found = state.get(prefix + name)
        if isinstance(found, Tensor):
            setattr(module, name, getattr(module, name).new_zeros(found.shape))


class Configured(Module):
    """The base of modules that are named with their arguments, and made for each tensor that is observed."""

    @classmethod
    def with_args(cls, **options: Any) -> _WithArguments:
        """A function that makes the module with these arguments."""
        return _WithArguments(functools.partial(cls, **options))


class ObserverBase(Configured):
    """The base of observers: `calculate_qparams()` returns the scale and the zero point."""

    def __init__(self, dtype: DType, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale and the zero point."""
        raise NotImplementedError(f"{type(self).__name__} has no scale: its numbers are quantised as they come, or not at all")


class _RangeObserver(ObserverBase):
    """The base of observers of the least and the greatest number, of a tensor or of each channel."""

    min_val: Tensor
    max_val: Tensor
    eps: Tensor
    averaging_constant: float  # of moving averages
    _of: ClassVar[str] = "tensor"
    _start: ClassVar[tuple[Any, Any]] = inf, -inf

    def __init__(
        self, dtype: DType = uint8, qscheme: qscheme = per_tensor_affine, reduce_range: bool = False,
        quant_min: int | None = None, quant_max: int | None = None, factory_kwargs: Any = None, eps: float = EPS,
        is_dynamic: bool = False,
    ) -> None:
        if not qscheme.name.startswith(f"per_{self._of}"):
            raise NotImplementedError(f"{type(self).__name__}: qscheme is {qscheme}; want per_{self._of}_affine or _symmetric")
        super().__init__(dtype, is_dynamic)
        if dtype not in _RANGES:
            raise ArgumentError(f"{type(self).__name__}: dtype is {dtype!r}; want uint8, int8 or int32")
        if (quant_min is None) != (quant_max is None):
            raise ArgumentError(f"{type(self).__name__}: quant_min {quant_min} and quant_max {quant_max}; want both or none")
        if quant_min is not None and quant_max is not None and not quant_min < quant_max:
            raise ArgumentError(f"{type(self).__name__}: quant_min {quant_min} is not below quant_max {quant_max}")
        if dtype is uint8 and reduce_range and qscheme in (per_tensor_symmetric, per_channel_symmetric):
            raise NotImplementedError(
                f"{type(self).__name__}: reduce_range with uint8 and {qscheme}; want quant_min and quant_max")
        self.qscheme, self.reduce_range = qscheme, reduce_range
        self.register_buffer("eps", from_data([eps]))
        self.has_customized_qrange = quant_min is not None
        low, high = _RANGES[dtype]
        low, high = low if quant_min is None else quant_min, high if quant_max is None else quant_max
        self.quant_min, self.quant_max = (low // 2, high // 2) if reduce_range else (low, high)
        for name, start in zip(("min_val", "max_val"), self._start, strict=True):
            self.register_buffer(name, from_data(start, float32))
        takes_sizes(self, "min_val", "max_val")

    def _note(self, least: Tensor, greatest: Tensor) -> None:
        with grad_mode(False):
            self.min_val = least.detach().to(self.min_val.dtype)
            self.max_val = greatest.detach().to(self.max_val.dtype)

    def _seen(self, least: Tensor, greatest: Tensor) -> None:
        if self.min_val.numel():
            least = call(OPERATIONS["minimum"], (least, self.min_val))
            greatest = call(OPERATIONS["maximum"], (greatest, self.max_val))
        self._note(least, greatest)

    def _averaged(self, least: Tensor, greatest: Tensor) -> None:
        """Note moving averages, of which these are the newest."""
        if self._has_seen:
            low, high, share = self.min_val, self.max_val, self.averaging_constant
            least, greatest = low + share * (least - low), high + share * (greatest - high)
        self._note(least, greatest)

    @property
    def _has_seen(self) -> bool:
        return self.min_val.numel() > 0 and not bool((self.min_val == inf).any())

    def reset_min_max_vals(self) -> None:
        """Reset the range."""
        self._note(*[from_data(start, float32) for start in self._start])

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale and the zero point with which the quantised numbers cover the observed range and 0."""
        if not self._has_seen:
            warnings.warn(f"{type(self).__name__}: calculate_qparams before anything was seen; the scale is 1", stacklevel=2)
            return from_data([1.0]), from_data([0])
        least_scale = self.eps.item()
        span, highest = self.quant_max - self.quant_min, float(self.quant_max - self.quant_min)
        least, greatest = self.min_val.clamp(max=0.0), self.max_val.clamp(min=0.0)
        zero = least.new_zeros(least.shape, dtype=int64)
        if self.qscheme in (per_tensor_symmetric, per_channel_symmetric):
            scale = (where(-least > greatest, -least, greatest) / (span / 2)).clamp(min=least_scale)
            if self.dtype is uint8:
                zero = zero + ((self.quant_min + self.quant_max) // 2 if self.has_customized_qrange else 128)
        else:
            scale = ((greatest - least) / highest).clamp(min=least_scale)
            zero = (self.quant_min - (least / scale).round().to(int64)).clamp(self.quant_min, self.quant_max)
        return (scale, zero) if scale.ndim else (scale.reshape(1), zero.reshape(1))

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"


class MinMaxObserver(_RangeObserver):
    """Tracks the least and the greatest number.

    >>> observer = genesis.ao.quantization.MinMaxObserver()
    >>> x = observer(genesis.tensor([-1.0, 4.1]))
    >>> observer.calculate_qparams()
    (tensor([0.0200]), tensor([50]))
    """

    def forward(self, x_orig: Tensor) -> Tensor:
        """`x_orig`, whose range is tracked."""
        if x_orig.numel():
            x = x_orig.detach()
            self._seen(x.amin(), x.amax())
        return x_orig


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Tracks moving averages of the inputs' least and greatest numbers."""

    def __init__(
        self, averaging_constant: float = 0.01, dtype: DType = uint8, qscheme: qscheme = per_tensor_affine,
        reduce_range: bool = False, quant_min: int | None = None, quant_max: int | None = None, eps: float = EPS,
        is_dynamic: bool = False, factory_kwargs: Any = None,
    ) -> None:
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, eps=eps, is_dynamic=is_dynamic)
        self.averaging_constant = averaging_constant
    _seen = _RangeObserver._averaged


class PerChannelMinMaxObserver(_RangeObserver):
    """Tracks the least and the greatest number at each index of axis `ch_axis`."""

    _of, _start = "channel", ([], [])

    def __init__(
        self, ch_axis: int = 0, dtype: DType = uint8, qscheme: qscheme = per_channel_affine, reduce_range: bool = False,
        quant_min: int | None = None, quant_max: int | None = None, factory_kwargs: Any = None, eps: float = EPS,
        is_dynamic: bool = False,
    ) -> None:
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic)
        self.ch_axis = ch_axis

    def forward(self, x_orig: Tensor) -> Tensor:
        """`x_orig`, whose range is tracked."""
        if x_orig.numel():
            rows = x_orig.detach().movedim(self.ch_axis, 0).flatten(1)
            self._seen(rows.amin(1), rows.amax(1))
        return x_orig


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """Tracks moving averages of each channel's least and greatest numbers."""

    def __init__(
        self, averaging_constant: float = 0.01, ch_axis: int = 0, dtype: DType = uint8, qscheme: qscheme = per_channel_affine,
        reduce_range: bool = False, quant_min: int | None = None, quant_max: int | None = None, eps: float = EPS,
        is_dynamic: bool = False, factory_kwargs: Any = None,
    ) -> None:
        super().__init__(ch_axis, dtype, qscheme, reduce_range, quant_min, quant_max, eps=eps, is_dynamic=is_dynamic)
        self.averaging_constant = averaging_constant
    _seen = _RangeObserver._averaged


class PlaceholderObserver(ObserverBase):
    """Tracks nothing: it only names a dtype, and keeps settings; as in PyTorch, `compute_dtype` has no effect."""

    def __init__(
        self, dtype: DType = float32, custom_op_name: str = "", compute_dtype: DType | None = None,
        quant_min: int | None = None, quant_max: int | None = None, qscheme: qscheme | None = None, eps: float | None = None,
        is_dynamic: bool = False,
    ) -> None:
        super().__init__(dtype, is_dynamic)
        self.qscheme, self.quant_min, self.quant_max, self.eps = qscheme or per_tensor_affine, quant_min, quant_max, eps
        self.custom_op = custom_op_name

    def forward(self, x: Tensor) -> Tensor:
        """`x`."""
        return x


class NoopObserver(PlaceholderObserver):
    """Tracks nothing."""


default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_weight_observer = MinMaxObserver.with_args(dtype=int8, qscheme=per_tensor_symmetric)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(dtype=int8, qscheme=per_channel_symmetric)
