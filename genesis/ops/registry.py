"""The operation table: primitives and operations.

Two tables. Graphs consist of `Primitive`s: derive reads a primitive's gradient, lowering its kind, code generation its
`emit`, tests its reference. Users call `Operation`s: `define` checks, promotes and broadcasts, then adds primitives to the
graph. An elementwise row makes both at once; a composite is an Operation alone, and its gradient follows from its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import Any, Literal, Protocol, TypedDict, Unpack

import numpy as np

from genesis.ir.annotations import AnyFunction
from genesis.ir.dtypes import DType, bool_, dtype_of_scalar, get_default_dtype, refuse_complex_number, result_type
from genesis.ir.errors import NoTensorError
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import Shape, broadcast_shapes, contiguous_strides
from genesis.ir.symbolic_sizes import Real, Size

Gradient = Callable[..., Value | tuple[Value | None, ...]]
Reference = Callable[..., np.ndarray | np.generic]
Emitter = Callable[..., object]  # (Arithmetic, *values) -> value; values are registers on the CPU, text on a GPU
Policy = Literal["low", "float32", "widest"]
Shared = tuple[Any, Sequence[tuple[Any, ...]]] | None  # an argument, and the names and arguments of views that follow


class Arithmetic(Protocol):
    """The operations of the kernel being generated, the same on all devices: a method per primitive."""

    def __getattr__(self, name: str) -> Emitter: ...


class Primitive:
    """A node kind.

    Attributes:
        kind: what lowering does with it: "elementwise", "reduce", "view", "contract", "gather", "host", ..
        grad: `grad(g, y, *inputs)`: the inputs' cotangents (one, or a tuple with None where none flows), as Values. Their
            shapes may still be broadcast: `derive` sums them back.
        adjoint: the transposed derivative, for forward mode, where `grad` follows a convention of PyTorch's instead.
        reference: `reference(node, *arrays)` computes it in NumPy.
        into: of a host operation: `into(node, out, *arrays)` writes to an `out` that does not overlap the operands.
        contiguous: whether a host operation requires contiguous operands.
        formula: of a host operation on real numbers: `formula(node, *inputs)`, the Value of others that have kernels, or None.
        native: whether a host operation has a CPU kernel that handles every call and never fails.
        part_of: (primitive, function): it is that function of the value of the other primitive, which has the same inputs and
            attributes.
        emit: `emit(k, *values)`: the elementwise body in terms of other primitives.
        cost: in simple operations: lowering weighs recomputing it against storing it.
        exact: whether it never rounds: 16-bit floats need no widening.
        vector: the file of `genesis.codegen.cpu.vector_math` with the CPU's function of this name.
        cuda: the GPU's expression of {0}, {1}, ..; without one, the formula of `vector` is written for GPUs, too.
        fault: `fault(node, value, extent)`: the exception for data that it rejects.
        draws: whether it draws random numbers: its last inputs are the seed and the counter's start.
    """

    __slots__ = (
        "adjoint", "contiguous", "cost", "cuda", "draws", "emit", "exact", "fault", "formula", "grad", "into", "kind", "name",
        "native", "part_of", "reference", "vector",
    )

    def __init__(
        self, name: str, kind: str, *, grad: Gradient | None = None, adjoint: Gradient | None = None,
        reference: Reference | None = None, into: Callable[..., None] | None = None, contiguous: bool = False,
        formula: Callable[..., Value | None] | None = None, native: bool = False,
        part_of: tuple[str, Callable[[Value], Value]] | None = None, emit: Emitter | None = None, cost: int = 1,
        exact: bool = False, vector: str | None = None, cuda: str | None = None,
        fault: Callable[[Node, int, int], Exception] | None = None, draws: bool = False,
    ) -> None:
        self.name, self.kind = name, kind
        self.grad, self.adjoint, self.reference, self.into = grad, adjoint, reference, into
        self.contiguous, self.formula, self.native, self.part_of = contiguous, formula, native, part_of
        self.emit, self.cost, self.exact, self.vector, self.cuda = emit, cost, exact, vector, cuda
        self.fault, self.draws = fault, draws


class Operation:
    """A function of tensors. Operations are compared by identity, and part of every trace key.

    Attributes:
        define: `define(*Values, ..)` checks, promotes and broadcasts, and adds primitives to the graph.
        operands: the positions of parameters that may be Python scalars instead of tensors. These become arguments of the
            compiled program, or are static with `static_scalars`, as all other arguments that are no tensors are.
        variadic: whether the first parameter is a sequence of tensors.
        autocast: its policy in mixed precision; see `genesis.ops.autocast`.
        is_view: whether the result shares the first argument's storage.
        method, in_place, operator, ..: its public names; see `Names`.
    """

    __slots__ = (
        "aliases", "autocast", "define", "elements", "fills", "in_place", "is_view", "keywords", "method", "name", "namespaces",
        "numbers_between", "operands", "operator", "public", "reference", "shares", "static_scalars", "takes_complex",
        "variadic",
    )

    def __init__(
        self, name: str, define: AnyFunction, operands: frozenset[int], reference: Reference | None = None, *,
        variadic: bool = False, static_scalars: bool = False, autocast: Policy | None = None, is_view: bool = False,
        method: bool = True, in_place: bool = False, operator: str | None = None, aliases: tuple[str, ...] = (),
        namespaces: tuple[str, ...] = (), public: bool = True, keywords: tuple[tuple[str, str], ...] = (),
        takes_complex: bool = False, numbers_between: tuple[str, ...] = (), elements: tuple[str, ...] = (),
        shares: Callable[..., Shared] | None = None, fills: bool = False,
    ) -> None:
        self.name, self.define, self.operands, self.reference = name, define, operands, reference
        self.variadic, self.static_scalars, self.autocast, self.is_view = variadic, static_scalars, autocast, is_view
        self.method, self.in_place, self.operator, self.public = method, in_place, operator, public
        self.aliases, self.namespaces, self.keywords = aliases, namespaces, keywords
        self.takes_complex, self.numbers_between, self.elements, self.shares = takes_complex, numbers_between, elements, shares
        self.fills = fills

    def __call__(self, *args: Any, **attrs: Any) -> Any:
        return self.define(*args, **attrs)


class Names(TypedDict, total=False):
    """A row's public names, by default `genesis.NAME` and the method `x.NAME()`, and what it accepts."""

    method: bool  # whether Tensor has it, under its name and its aliases
    in_place: bool  # whether there is `x.NAME_()`, or `inplace=True` of the function in nn.functional
    operator: str  # its operator: "add" for `x + y`
    aliases: tuple[str, ...]  # further names; "special.expit" is one in that module
    namespace: str | tuple[str, ...]  # the modules that export it: "special", "nn.functional"
    public: bool  # False: `genesis` has no function of this name, or a different one
    keywords: dict[str, str]  # further names of arguments: {"axes": "dims"}
    takes_complex: bool  # False: complex numbers raise TypeError at the user's line
    numbers_between: tuple[str, ...]  # numbers that old PyTorch signatures put between the tensors
    elements: tuple[str, ...]  # arguments that become elements: out of an integer dtype's range raises
    shares: Callable[..., Shared]  # (*arguments): where the result is one of them, or views of it
    fills: bool  # (value, shape, dtype): a little result of a line that makes other shapes each time is filled at once


PRIMITIVES: dict[str, Primitive] = {}
OPERATIONS: dict[str, Operation] = {}


def primitive(name: str, kind: str, **rules: Any) -> Primitive:
    """Add a row to PRIMITIVES."""
    PRIMITIVES[name] = row = Primitive(name, kind, **rules)
    return row


def composite(
    name: str, operands: int | Sequence[int] = 1, *, ref: Reference | None = None, variadic: bool = False,
    static_scalars: bool = False, is_view: bool = False, doc: str | None = None, autocast: Policy | None = None,
    **names: Unpack[Names],
) -> Callable[[AnyFunction], Operation]:
    """Decorator: a function of Values becomes the operation `name` with the public names `names`.

    Its documentation is its docstring, `doc`, or that of the NumPy function that is its reference.
    """
    fields: dict[str, Any] = {**names, "keywords": tuple(names.get("keywords", {}).items())}
    namespace = fields.pop("namespace", ())

    def register(define: AnyFunction) -> Operation:
        if define.__doc__ is None:
            define.__doc__ = doc or (f"As `numpy.{ref.__name__}`." if isinstance(ref, np.ufunc) else None)
        positions = frozenset(range(operands) if isinstance(operands, int) else operands)
        OPERATIONS[name] = row = Operation(
            name, define, positions, ref, variadic=variadic, static_scalars=static_scalars, autocast=autocast, is_view=is_view,
            namespaces=(namespace,) if isinstance(namespace, str) else namespace, **fields)
        return row

    return register


def row_at(path: str) -> Operation | None:
    """The row at a public path below `genesis`, such as "exp" or "special.expit"; None if there is none."""
    home, _, name = path.rpartition(".")
    row = OPERATIONS.get(name)
    if row is not None and (home in row.namespaces if home else row.public):
        return row
    return next((row for row in OPERATIONS.values() if path in row.aliases), None)


def names_in(namespace: str) -> set[str]:
    """The row names that a module exports; "" means `genesis` itself."""
    shown = {row.name for row in OPERATIONS.values() if (namespace in row.namespaces if namespace else row.public)}
    paths = [alias.rpartition(".") for row in OPERATIONS.values() for alias in row.aliases]
    return shown | {name for home, _, name in paths if home == namespace}


# ---- what every definition needs: lifting, promoting, broadcasting ----
def as_values(*operands: Value | complex) -> list[Value]:
    """Python scalars among the operands become weak constants of the Values' graph."""
    values = [o for o in operands if isinstance(o, Value)]
    if len(values) == len(operands) > 0:
        return values
    graph = values[0].graph if values else None
    for o in operands:
        if not isinstance(o, Value | bool | int | float | complex | Size | Real):
            shown = f" {o!r:.40}" if isinstance(o, str) else ""  # only strings: another object's text may compute its value
            raise TypeError(f"operands must be tensors or numbers, got {type(o).__name__}{shown}")
    if graph is None:
        raise NoTensorError("wants a tensor among its operands, got numbers alone")
    return [o if isinstance(o, Value) else graph.constant(o, dtype_of_scalar(o), weak=True) for o in operands]


def cast(x: Value, dtype: DType) -> Value:
    """`x` in another dtype; constants and Python numbers take it directly."""
    if x.dtype is dtype:
        return x
    if x.node.op == "constant":
        value = x.node.attrs["value"]
        if x.is_scalar:
            refuse_complex_number("cast", value, dtype)
        return x.graph.constant(_number(value, dtype), dtype)
    if x.node.op == "scalar":  # a Python number is rounded once, to the dtype it is used in
        return x.graph.add("scalar", (), (), dtype, {"slot": x.node.attrs["slot"]})
    return x.graph.add("cast", (x,), x.shape, dtype, {"dtype": dtype.name})


def _number(value: complex, dtype: DType) -> complex:
    """A Python number converted to `dtype`; a real dtype takes a complex number's real part."""
    if dtype is bool_:
        return bool(value)
    if dtype.category == 3:
        return complex(value)
    part = value.real if isinstance(value, complex) else value
    if dtype.category == 2:
        return part / 1
    return part if part.__class__ is Size and dtype.itemsize == 8 else wrapped(int(part), dtype)


def widened(x: Value) -> Value:
    """`x` in its compute dtype: definitions of several steps compute in it and round at the end."""
    return cast(x, x.dtype.compute)


def rounded_once(define: Callable[..., Value]) -> Callable[..., Value]:
    """Decorator: a definition with one result runs in the compute dtype and rounds at the end.

    Integers become the default float first.
    """

    @wraps(define)
    def wide(input: Value, *args: Any, **attrs: Any) -> Value:
        dtype = floating_dtype(input.dtype)
        return cast(define(widened(cast(input, dtype)), *args, **attrs), dtype)

    return wide


def wrapped(value: int, dtype: DType) -> int:
    """`value` modulo the range of an integer dtype, as a conversion in C.

    >>> from genesis.ir.dtypes import uint8
    >>> wrapped(-1, uint8)
    255
    """
    bits = 8 * dtype.itemsize
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype.is_signed and value >> (bits - 1) else value


def promoted(*operands: Value | complex, floating: bool = False) -> list[Value]:
    """The operands in their common dtype by PyTorch's rules; with `floating`, integers become the default float."""
    values = as_values(*operands)
    shared = values[0].dtype
    if shared.category == 2 and all([v.dtype is shared for v in values]):
        return values
    dtype = result_type((v.dtype, 0 if v.is_scalar else 2 if v.shape else 1) for v in values)
    if floating and dtype.category < 2:
        dtype = get_default_dtype()
    return [cast(v, dtype) for v in values]


def alike(name: str, *values: Value) -> tuple[Value, ...]:
    """The values. Raises TypeError unless they have one dtype."""
    if len({v.dtype for v in values}) > 1:
        raise TypeError(f"{name}: dtypes differ: {' and '.join([v.dtype.name for v in values])}; convert with .to(dtype)")
    return values


def expand(x: Value, shape: Shape) -> Value:
    """`x` broadcast to `shape`, as a view with strides 0; the caller has checked that it fits."""
    if x.shape == shape:
        return x
    return x.graph.once((x.index, shape), lambda: _expanded(x, shape)) if x.node.op == "constant" else _expanded(x, shape)


def _expanded(x: Value, shape: Shape) -> Value:
    attrs = {"shape": shape, "strides": _spread(x.shape, shape), "offset": 0, "label": "expand"}
    return x.graph.add("view", (x,), shape, x.dtype, attrs)


@lru_cache(1 << 12)
def _spread(shape: Shape, wanted: Shape) -> Shape:
    """The strides that read a value of `shape` as one of the shape `wanted`."""
    strides = contiguous_strides(shape)
    lead = len(wanted) - len(shape)
    return tuple(
        0 if axis < lead or shape[axis - lead] != extent else strides[axis - lead] for axis, extent in enumerate(wanted)
    )


def broadcast(name: str, *values: Value) -> list[Value]:
    """The values expanded to their common shape."""
    shapes = [v.shape for v in values]
    if shapes.count(shapes[0]) == len(shapes):
        return [*values]
    shape = broadcast_shapes(name, *shapes)
    return [expand(v, shape) for v in values]


def floating_dtype(dtype: DType) -> DType:
    """`dtype` if it is floating or complex, the default float otherwise."""
    return dtype if dtype.category >= 2 else get_default_dtype()
