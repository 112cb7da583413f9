"""Names of `torch` itself: settings, queries and old spellings, by genesis' functions."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

import genesis
from genesis.as_torch.stand_ins.settings import always, itself, no, nothing, yes
from genesis.functions.methods.storage import TypedStorage
from genesis.functions.methods.table import function_of
from genesis.functions.overrides import routed_function
from genesis.ir.annotations import AnyFunction
from genesis.ir.dtypes import DType
from genesis.ir.errors import ArgumentError
from genesis.ops.registry import OPERATIONS
from genesis.runtime.devices import DeviceLike
from genesis.runtime.rng import default_generator
from genesis.signal import windows
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import in_place_form
from genesis.tensor.out import takes_out

# ---- settings ----
set_warn_always = clear_autocast_cache = nothing
set_autocast_cache_enabled = set_num_interop_threads = init_num_threads = nothing
is_warn_always_enabled = is_vulkan_available = is_distributed = no
is_autocast_cpu_enabled = genesis.is_autocast_enabled
has_mkl = has_openmp = has_spectral = False
has_lapack = True
default_generator = default_generator
is_autocast_cache_enabled = yes  # equal casts of one program are computed once
set_flush_denormal = no  # it cannot be set
get_num_interop_threads = always(1)  # operations of a program run one after another


def is_storage(obj: object) -> bool:
    """Whether it is a storage."""
    return isinstance(obj, TypedStorage)


def typename(obj: Any) -> str:
    """The name of a tensor's type, or of an object's class."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    kind = obj if isinstance(obj, type) else type(obj)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


# ---- numbers that tracers may know by name alone, which are numbers here ----
sym_float, sym_int, sym_max, sym_min, sym_sum, sym_sqrt, sym_not = float, int, max, min, sum, math.sqrt, operator.not_
sym_fresh_size = itself


class SymInt:
    """A size whose value a tracer does not know. Sizes are ints here: there are no instances."""

    def __init__(self, node: object) -> None:
        raise TypeError(f"{type(self).__name__}: there are no symbolic numbers; sizes are ints")


class SymFloat(SymInt):
    """A float whose value a tracer does not know: there are no instances."""


class SymBool(SymInt):
    """A truth value that a tracer does not know: there are no instances."""


def sym_constrain_range(size: int, *, min: int | None = None, max: int | None = None) -> None:
    """Raise RuntimeError unless a number lies in a range."""
    if not (-math.inf if min is None else min) <= size <= (math.inf if max is None else max):
        raise RuntimeError(f"Invalid value range for {size} between [{min}, {max}].")


def sym_constrain_range_for_size(size: int, *, min: int | None = None, max: int | None = None) -> None:
    """`sym_constrain_range` of a size, which is not negative."""
    sym_constrain_range(size, min=min or 0, max=max)


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """`t` where `b` holds, else `f`."""
    return t if b else f


def cond(pred: Any, true_fn: AnyFunction, false_fn: AnyFunction, operands: Sequence[Any] = ()) -> Any:
    """The result of the branch chosen by `pred`, whose value is read."""
    return (true_fn if pred else false_fn)(*operands)


def dequantize(input: Tensor) -> Tensor:
    """The numbers as float32: no tensor is quantized."""
    return input.to(genesis.float32)


# ---- copies ----
def copied(view: AnyFunction) -> AnyFunction:
    """The function that copies what `view` gives."""
    return lambda input: view(input).clone()


# ---- old spellings ----
@takes_out
def range(
    start: float, end: float, step: float = 1, *, dtype: DType | None = None, device: DeviceLike = None,
    requires_grad: bool = False, **options: Any,
) -> Tensor:
    """`arange` with its end, of the default float."""
    numbers = genesis.arange(math.floor((end - start) / step) + 1, dtype=genesis.float64, device=device, **options)
    return (numbers * step + start).to(dtype or genesis.get_default_dtype()).requires_grad_(requires_grad)


def chain_matmul(*matrices: Tensor) -> Tensor:
    """`linalg.multi_dot`, also of one matrix."""
    return matrices[0] if len(matrices) == 1 else genesis.linalg.multi_dot(matrices)


def frobenius_norm(input: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    """The root of the sum of squares."""
    return input.square().sum(dim or None, keepdim).sqrt()


def nuclear_norm(input: Tensor, dim: Any = (-2, -1), keepdim: bool = False) -> Tensor:
    """The sum of singular values."""
    return genesis.linalg.matrix_norm(input, "nuc", dim, keepdim)


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of each element in a row: the highest first, unless `increasing`."""
    made = genesis.linalg.vander(x, N=N)
    return made if increasing else made.flip(-1)


def get_device(input: Tensor) -> int:
    """The number of the tensor's GPU; -1 on the CPU."""
    return input.get_device()


def frombuffer(
    buffer: Any, *, dtype: DType, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A tensor of a buffer's bytes, in its memory. Raises ValueError for what is no buffer, or has not so many elements."""
    try:
        size = memoryview(buffer).nbytes
    except TypeError as problem:
        raise ArgumentError(f"frombuffer: {problem}") from None
    if not count or offset >= size:
        raise ArgumentError(f"frombuffer: {count} elements from byte {offset} of {size}; want 1 or more, or -1 for all")
    return genesis.from_numpy(np.frombuffer(buffer, dtype.numpy, count, offset)).requires_grad_(requires_grad)


def _window(name: str, shape: AnyFunction, *names: str) -> AnyFunction:
    """The function `name`, whose further parameters are those of these names."""
    def window(window_length: int, periodic: bool = True, *parameters: float, **kwargs: Any) -> Tensor:
        return shape(window_length, sym=not periodic, **dict(zip(names, parameters, strict=False)), **kwargs)  # type: ignore[no-any-return]

    return routed_function(window, name)


def _hamming(M: int, alpha: float = 0.54, beta: float = 0.46, **options: Any) -> Tensor:
    """alpha - beta cos(2 pi k / n)."""
    return windows.general_cosine(M, a=[alpha, beta], **options)


bartlett_window, blackman_window, hann_window = (
    _window(f"{name}_window", getattr(windows, name)) for name in ("bartlett", "blackman", "hann"))
hamming_window = _window("hamming_window", _hamming, "alpha", "beta")
kaiser_window = _window("kaiser_window", windows.kaiser, "beta")
dropout_, alpha_dropout_ = map(in_place_form, (genesis.dropout, genesis.alpha_dropout))
threshold_ = in_place_form(function_of(OPERATIONS["threshold"]))
