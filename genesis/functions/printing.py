"""Tensors as text, in PyTorch's layout."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from genesis.functions.methods.conversion import values_of
from genesis.ir.annotations import Scalar
from genesis.ir.dtypes import bool_, get_default_dtype, int64
from genesis.ir.errors import ArgumentError
from genesis.runtime.deferred import deferred
from genesis.runtime.devices import CPU, META
from genesis.tensor.handle import Tensor, method

if TYPE_CHECKING:
    from html import escape
else:
    escape = deferred("html", "escape")

PREFIX = "tensor("


class PrintOptions(NamedTuple):
    """Print options: digits, the element count past which tensors are abridged, and the number of edge items then shown."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}
_options = [PrintOptions()]


def get_printoptions() -> PrintOptions:
    """The current options."""
    return _options[0]


def set_printoptions(
    precision: int | None = None, threshold: float | None = None, edgeitems: int | None = None,
    linewidth: int | None = None, profile: str | None = None, sci_mode: bool | None = None,
) -> None:
    """Set how tensors print; omitted settings stay. `profile` ("default", "short", "full") sets them all first.

    >>> genesis.set_printoptions(precision=2)
    >>> genesis.tensor(3.14159)
    tensor(3.14)
    >>> genesis.set_printoptions(profile="default")
    """
    if profile is not None and profile not in _PROFILES:
        raise ArgumentError(f"set_printoptions: profile must be one of {', '.join(_PROFILES)}, got {profile!r}")
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    options = _PROFILES[profile] if profile else _options[0]
    options = options._replace(**{k: v for k, v in given.items() if v is not None})  # type: ignore[arg-type]
    _options[0] = options._replace(sci_mode=sci_mode)


class _Format:
    """The format of an element, chosen from all shown elements."""

    def __init__(self, values: np.ndarray, options: PrintOptions) -> None:
        self.precision = options.precision
        self.floating = values.dtype.kind == "f"
        self.whole, self.scientific, self.width = True, False, 1
        if not self.floating:
            self.width = max(len(str(v)) for v in values.ravel().tolist())
            return
        shown = values[np.isfinite(values) & (values != 0)].astype(np.float64)
        if shown.size:
            low, high = np.abs(shown).min(), np.abs(shown).max()
            self.whole = bool((shown == np.ceil(shown)).all())
            self.scientific = high / low > 1000 or high > 1e8 or (not self.whole and low < 1e-4)
        if options.sci_mode is not None:
            self.scientific = options.sci_mode
        if shown.size:
            self.width = max(1, *(len(self.write(v)) for v in shown.tolist()))

    def write(self, value: Scalar) -> str:
        """The element without padding."""
        if not self.floating:
            return str(value)
        if self.scientific:
            return f"{value:.{self.precision}e}"
        if self.whole:
            return f"{value:.0f}" + "." * math.isfinite(value)
        return f"{value:.{self.precision}f}"

    def __call__(self, value: Scalar) -> str:
        return self.write(value).rjust(self.width)


class _ComplexFormat:
    """The format of a complex element: one format per part."""

    def __init__(self, values: np.ndarray, options: PrintOptions) -> None:
        self.real, self.imag = _Format(values.real, options), _Format(values.imag, options)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value: complex) -> str:
        imag = self.imag(value.imag).lstrip()
        return f"{self.real(value.real)}{'' if imag[0] in '+-' else '+'}{imag}j"


def _abridged(values: np.ndarray, edge: int) -> np.ndarray:
    """The elements shown in an abridged print."""
    for axis, extent in enumerate(values.shape):
        if extent > 2 * edge:
            values = np.take(values, [*range(edge), *range(extent - edge, extent)], axis)
    return values


def _vector(values: np.ndarray, indent: int, form: _Format | _ComplexFormat, options: PrintOptions, edge: int) -> str:
    if edge and len(values) > 2 * edge:
        written = [*map(form, values[:edge].tolist()), " ...", *map(form, values[-edge:].tolist())]
    else:
        written = [*map(form, values.tolist())]
    per_line = max(1, (options.linewidth - indent) // (form.width + 2))
    lines = [", ".join(written[i : i + per_line]) for i in range(0, len(written), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _nested(values: np.ndarray, indent: int, form: _Format | _ComplexFormat, options: PrintOptions, edge: int) -> str:
    """Brackets within brackets, one pair per axis; `edge` is 0 if everything is shown."""
    if values.ndim == 0:
        return form(values.item())
    if values.ndim == 1:
        return _vector(values, indent, form, options, edge)
    abridge = edge and len(values) > 2 * edge
    shown = [*values[:edge], None, *values[-edge:]] if abridge else [*values]
    rows = ["..." if row is None else _nested(row, indent + 1, form, options, edge) for row in shown]
    return "[" + ("," + "\n" * (values.ndim - 1) + " " * (indent + 1)).join(rows) + "]"


def suffixes(tensor: Tensor) -> list[str]:
    """The text after the elements: size, dtype, grad_fn."""
    found = [f"device='{tensor.device}'"] if tensor.device is not CPU else []
    default = get_default_dtype()
    bare = tensor.device is META or tensor.numel() == 0
    usual = [default] if bare else [default, default.complex, int64, bool_]
    if bare and (tensor.device is META or tensor.ndim != 1):
        found.append(f"size={tuple(tensor.shape)}")
    if tensor.dtype not in usual:
        found.append(f"dtype={tensor.dtype!r}")
    if tensor.grad_fn is not None:
        found.append(f"grad_fn=<{type(tensor.grad_fn).__name__}>")
    elif tensor.requires_grad:
        found.append("requires_grad=True")
    return found


def elements_text(tensor: Tensor, indent: int) -> str:
    """The elements within brackets; lines after the first are indented."""
    options = _options[0]
    values = values_of(tensor).astype(tensor.dtype.compute.numpy, copy=False)
    if values.size == 0:
        return "[]"
    edge = options.edgeitems if values.size > options.threshold else 0
    shown = _abridged(values, edge) if edge else values
    form = (_ComplexFormat if tensor.dtype.is_complex else _Format)(shown, options)
    return _nested(values, indent, form, options, edge)


def with_suffixes(text: str, suffixes: list[str], starts_line: bool = False, indent: int = len(PREFIX)) -> str:
    """`text` and its suffixes, wrapped to the line width; on a new line if `starts_line`."""
    length = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if starts_line or length + len(suffix) + 2 > _options[0].linewidth:
            text += ",\n" + " " * indent + suffix
            length, starts_line = indent + len(suffix), False
        else:
            text += ", " + suffix
            length += len(suffix) + 2
    return text + ")"


@method
def __repr__(self: Tensor) -> str:
    is_own = f"{type(self).__module__}.".startswith(("genesis.", "torch."))  # its name in programs of PyTorch's
    prefix = PREFIX if is_own else f"{type(self).__name__}("
    if self.device is META:
        return f"{prefix}..., {', '.join(suffixes(self))})"
    return with_suffixes(prefix + elements_text(self, len(prefix)), suffixes(self), indent=len(prefix))


@method
def _repr_html_(self: Tensor) -> str:
    """HTML for notebooks: dtype, shape and device, then the elements, as a table for vectors and matrices."""
    kind = [f"{self.dtype!r}{list(self.shape)}".removeprefix("genesis."), *suffixes(self)]
    head = escape(" · ".join(dict.fromkeys(kind)))
    if self.ndim not in (1, 2) or self.numel() == 0 or self.device is META:
        return f"<div><small>{head}</small><pre>{escape(repr(self))}</pre></div>"
    options = _options[0]
    values = values_of(self).astype(self.dtype.compute.numpy, copy=False).reshape(-1, self.shape[-1])
    rows, columns = (_shown(extent, options.edgeitems, values.size > options.threshold) for extent in values.shape)
    shown = values[np.ix_([i for i in rows if i is not None], [j for j in columns if j is not None])]
    form = (_ComplexFormat if self.dtype.is_complex else _Format)(shown, options)
    written = [["&hellip;" if i is None or j is None else form(values[i, j].item()) for j in columns] for i in rows]
    body = "".join(f"<tr><td>{'</td><td>'.join(row)}</td></tr>" for row in written)
    return f"<div><small>{head}</small><table>{body}</table></div>"


def _shown(extent: int, edge: int, abridge: bool) -> list[int | None]:
    """The shown indices along an axis; None for the omitted ones."""
    return [*range(edge), None, *range(extent - edge, extent)] if abridge and extent > 2 * edge else [*range(extent)]
