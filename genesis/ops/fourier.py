"""Fourier transforms: three primitives, and the family of functions made of them.

`fft_complex` maps complex to complex, `fft_from_real` real numbers to half a spectrum (the other half is its conjugate), and
`fft_to_real` back. Each is linear and its gradient is another of them, so a derivative of any order is one call per
transform. Their attributes are the axes, counted from the end, the direction, and the `scale`: 0 for none, 1 for 1/sqrt(n), 2
for 1/n.

On the CPU a kernel computes extents that are products of small primes (`codegen.cpu.fourier`); SciPy computes the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from genesis.ir.errors import ArgumentError, ArgumentTypeError
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import Shape, normalize_axis
from genesis.ops.elementwise import where
from genesis.ops.registry import Gradient, cast, composite, floating_dtype, primitive
from genesis.ops.source import iota
from genesis.ops.views import reshape_value
from genesis.ops.window import pad_value
from genesis.runtime.deferred import import_whole
from genesis.runtime.number_of_threads import get_num_threads

Sizes = int | Sequence[int] | None


# ---- SciPy's transforms, which write into given memory; its public functions' results are copied there ----
Axes = Sequence[int]
_NORMS = {True: ("backward", "ortho", "forward"), False: ("forward", "ortho", "backward")}  # SciPy's names of scales
_THREADED = 1 << 15  # threads pay from this many points on


class _Transforms(NamedTuple):
    """Functions of an array, axes, the last extent (`to_real` only), the direction, the scale, the result and the threads."""

    whole: Callable[..., object]
    to_half: Callable[..., object]
    to_real: Callable[..., object]


@lru_cache(None)
def _transforms() -> _Transforms:
    try:
        found = import_whole("scipy.fft._pocketfft.pypocketfft")
        return _Transforms(found.c2c, found.r2c, found.c2r)
    except (ImportError, AttributeError):
        return _Transforms(_public("fftn", "ifftn"), _public("rfftn", "ihfftn"), _public_to_real)


def _public(forth: str, back: str) -> Callable[..., None]:
    def transform(x: np.ndarray, axes: Axes, forward: bool, scale: int, out: np.ndarray, threads: int) -> None:
        function = getattr(import_whole("scipy.fft"), forth if forward else back)
        out[...] = function(x, axes=axes, norm=_NORMS[forward][scale], workers=threads)

    return transform


def _public_to_real(x: np.ndarray, axes: Axes, extent: int, forward: bool, scale: int, out: np.ndarray, threads: int) -> None:
    function = getattr(import_whole("scipy.fft"), "hfftn" if forward else "irfftn")
    extents = [out.shape[axis] for axis in axes]
    out[...] = function(x, s=extents, axes=axes, norm=_NORMS[forward][scale], workers=threads)


# ---- host operations ----
def _row(name: str, grad: Gradient, kind: str) -> None:
    """A primitive that calls a function of `_Transforms`."""
    def into(node: Node, out: np.ndarray, x: np.ndarray) -> None:
        if x.size:
            axes, forward, scale = (node.attrs[setting] for setting in ("axes", "forward", "scale"))
            extent = [out.shape[axes[-1]]] if kind == "to_real" else []
            threads = get_num_threads() if x.size >= _THREADED else 1
            getattr(_transforms(), kind)(x, axes, *extent, forward, scale, out, threads)

    def reference(node: Node, x: np.ndarray) -> np.ndarray:
        out = np.empty(node.shape, node.dtype.numpy)
        into(node, out, x)
        return out

    primitive(name, "host", grad=grad, reference=reference, into=into)


# ---- the nodes ----
def transformed(x: Value, axes: tuple[int, ...], forward: bool, scale: int) -> Value:
    attrs = {"axes": axes, "forward": forward, "scale": scale}
    x = cast(x, x.dtype.complex)
    return x.graph.add("fft_complex", (x,), x.shape, x.dtype, attrs)


def spectrum(x: Value, axes: tuple[int, ...], forward: bool, scale: int) -> Value:
    """The spectrum of a real value: the first half of the last axis."""
    attrs = {"axes": axes, "forward": forward, "scale": scale}
    shape = _with_extent(x.shape, axes[-1], x.shape[axes[-1]] // 2 + 1)
    return x.graph.add("fft_from_real", (x,), shape, x.dtype.complex, attrs)


def from_spectrum(x: Value, axes: tuple[int, ...], extent: int, forward: bool, scale: int) -> Value:
    """The real value of which `x` is the half of the spectrum; its last axis has `extent` points."""
    attrs = {"axes": axes, "forward": forward, "scale": scale}
    return x.graph.add("fft_to_real", (x,), _with_extent(x.shape, axes[-1], extent), x.dtype.real, attrs)


def _with_extent(shape: Shape, axis: int, extent: int) -> Shape:
    at = axis % len(shape)
    return (*shape[:at], extent, *shape[at + 1 :])


def _weighted(x: Value, axis: int, extent: int, inner: float) -> Value:
    """Half a spectrum; points that represent two of the whole one's `extent` points are multiplied by `inner`."""
    at = axis % x.ndim
    position = iota(x.graph, x.shape[at])
    weight = where((position == 0) | (position * 2 == extent), 1.0, inner)
    return x * cast(reshape_value(weight, (x.shape[at], *(1,) * (x.ndim - at - 1))), x.dtype.real)


def _complex_grad(g: Value, y: Value, x: Value) -> Value:
    at = y.node.attrs
    return transformed(g, at["axes"], not at["forward"], at["scale"])


def _from_real_grad(g: Value, y: Value, x: Value) -> Value:
    at = y.node.attrs
    last = at["axes"][-1]
    return from_spectrum(_weighted(g, last, x.shape[last], 0.5), at["axes"], x.shape[last], not at["forward"], at["scale"])


def _to_real_grad(g: Value, y: Value, x: Value) -> Value:
    at = y.node.attrs
    last = at["axes"][-1]
    return _weighted(spectrum(g, at["axes"], not at["forward"], at["scale"]), last, y.shape[last], 2.0)


_row("fft_complex", _complex_grad, "whole")
_row("fft_from_real", _from_real_grad, "to_half")
_row("fft_to_real", _to_real_grad, "to_real")


# ---- arguments ----
def _scale(name: str, norm: str | None, forward: bool) -> int:
    """The scale of a transform: without `norm` only the inverse is scaled."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise ArgumentError(f'{name}: norm is {norm!r}; want None, "backward", "ortho" or "forward"')
    return 1 if norm == "ortho" else 2 * ((norm == "forward") is forward)


def _axes(name: str, x: Value, s: Sizes, dim: Sizes) -> tuple[tuple[int, ...], list[int | None]]:
    """The axes, counted from the end, and the requested extents along them (None: unchanged)."""
    sizes = None if s is None else [s] if isinstance(s, int) else list(s)
    if dim is None:
        listed = list(range(x.ndim - len(sizes), x.ndim)) if sizes is not None else list(range(x.ndim))
        if sizes is not None and len(sizes) > x.ndim:
            raise ArgumentError(f"{name}: s has {len(sizes)} extents for shape {x.shape}; want one for each axis at most")
    else:
        listed = [normalize_axis(name, d, x.ndim) for d in ([dim] if isinstance(dim, int) else dim)]
    if len({*listed}) < len(listed):
        raise ArgumentError(f"{name}: dim {dim} names an axis more than once")
    if sizes is not None and len(sizes) != len(listed):
        raise ArgumentError(f"{name}: s has {len(sizes)} extents for {len(listed)} axes; want one each")
    asked: Sequence[int | None] = sizes or [None] * len(listed)
    extents = [None if e == -1 else e for e in asked]
    return tuple([axis - x.ndim for axis in listed]), extents


def _resized(name: str, x: Value, axes: Sequence[int], extents: Sequence[int | None]) -> Value:
    """`x` cut, or filled with zeros, to the `extents` along some axes."""
    after = [0] * x.ndim
    for axis, extent in zip(axes, extents, strict=True):
        extent = x.shape[axis] if extent is None else extent
        if extent < 1:
            raise ArgumentError(f"{name}: an axis has {extent} points; want one at least")
        after[axis] = extent - x.shape[axis]
    return pad_value(x, (0,) * x.ndim, tuple(after)) if any(after) else x


def transformable(name: str, x: Value) -> Value:
    """`x` in a dtype that has transforms. Raises TypeError for 16-bit floats and complex32."""
    dtype = floating_dtype(x.dtype)
    if dtype.compute is not dtype:
        raise ArgumentTypeError(
            f"{name}: wants float32, float64 or complex numbers, got {dtype.name}; convert with .to(genesis.float32)")
    return cast(x, dtype)


# ---- complex to complex ----
def _complex(name: str, x: Value, s: Sizes, dim: Sizes, norm: str | None, forward: bool) -> Value:
    x = transformable(name, x)
    axes, extents = _axes(name, x, s, dim)
    scale = _scale(name, norm, forward)
    x = _resized(name, x, axes, extents)
    return transformed(x, axes, forward, scale) if axes else cast(x, x.dtype.complex)


def _of_real(name: str, x: Value, s: Sizes, dim: Sizes, norm: str | None, forward: bool) -> Value:
    if x.dtype.is_complex:
        raise ArgumentTypeError(f"{name}: wants a real tensor, got {x.dtype.name}; fft and ifft take complex ones")
    x = transformable(name, x)
    axes, extents = _axes(name, x, s, dim)
    if not axes:
        raise ArgumentError(f"{name}: wants one axis at least")
    return spectrum(_resized(name, x, axes, extents), axes, forward, _scale(name, norm, forward))


def _to_real(name: str, x: Value, s: Sizes, dim: Sizes, norm: str | None, forward: bool) -> Value:
    x = transformable(name, x)
    x = cast(x, x.dtype.complex)
    axes, extents = _axes(name, x, s, dim)
    if not axes:
        raise ArgumentError(f"{name}: wants one axis at least")
    last = 2 * (x.shape[axes[-1]] - 1) if extents[-1] is None else extents[-1]
    if last < 1:
        raise ArgumentError(f"{name}: the last axis of the result has {last} points; want one at least")
    x = _resized(name, x, axes, [*extents[:-1], last // 2 + 1])
    return from_spectrum(x, axes, last, forward, _scale(name, norm, forward))


_KINDS = {
    "fft": (_complex, True, "the Fourier transform"), "ifft": (_complex, False, "the inverse Fourier transform"),
    "rfft": (_of_real, True, "the first half of the Fourier transform, of real numbers,"),
    "irfft": (_to_real, False, "the real numbers whose Fourier transform has `input` for its first half,"),
    "hfft": (_to_real, True, "the real Fourier transform of numbers with `input` for their first half"),
    "ihfft": (_of_real, False, "the first half of the inverse Fourier transform, of real numbers,"),
}
_EXAMPLES = {
    "fft": "fft(genesis.tensor([1.0, 0.0, 0.0])).real\n    tensor([1., 1., 1.])",
    "ifft": "ifft(genesis.tensor([3.0, 0.0, 0.0])).real\n    tensor([1., 1., 1.])",
    "rfft": "rfft(genesis.tensor([1.0, 0.0, 0.0]))\n    tensor([1.+0.j, 1.+0.j])",
    "irfft": "irfft(genesis.tensor([3.0, 0.0]), n=3)\n    tensor([1., 1., 1.])",
    "hfft": "hfft(genesis.tensor([1.0, 0.0]), n=3)\n    tensor([1., 1., 1.])",
    "ihfft": "ihfft(genesis.tensor([3.0, 0.0, 0.0])).real\n    tensor([1., 1.])",
}


def _rows(kind: str) -> None:
    transform, forward, what = _KINDS[kind]
    capital = what[0].upper() + what[1:]

    def one(input: Value, n: int | None = None, dim: int = -1, norm: str | None = None) -> Value:
        return transform(kind, input, n, dim, norm, forward)

    def two(input: Value, s: Sizes = None, dim: Sizes = (-2, -1), norm: str | None = None) -> Value:
        return transform(f"{kind}2", input, s, dim, norm, forward)

    def several(input: Value, s: Sizes = None, dim: Sizes = None, norm: str | None = None) -> Value:
        return transform(f"{kind}n", input, s, dim, norm, forward)

    one.__doc__ = f"""{capital} along `dim`, which is cut or filled with zeros to `n` points.

    `norm` says which direction is scaled: "backward" (None) the inverse one by 1/n, "forward" the other one, "ortho" both by
    1/sqrt(n). Raises ValueError for another, or no points, TypeError for a dtype that has no transform.

    >>> genesis.fft.{_EXAMPLES[kind]}
    """
    two.__doc__ = f"{capital} over two axes, cut or filled with zeros to `s` points; `norm` as that of `{kind}`."
    several.__doc__ = f"{capital} over `dim`, all axes if None or as many as `s` has; `norm` as that of `{kind}`."
    for define, name in (one, kind), (two, f"{kind}2"), (several, f"{kind}n"):
        composite(name, method=False, public=False, namespace="fft", takes_complex=True)(define)


for _kind in _KINDS:
    _rows(_kind)
