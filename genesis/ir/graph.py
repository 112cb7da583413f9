"""The IR: a graph is a list of nodes, and a node names its inputs by their position in that list.

Positions only ever point backwards, so a graph is always topologically sorted and acyclic: every pass is one loop over
the list, never a recursion. A `Value` is a position together with its graph; operation definitions and gradient rules
compute with Values, and each operator they use adds a node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from genesis.ir.annotations import Key, Options, Scalar
from genesis.ir.dtypes import NAMED, DType, refuse_complex_number
from genesis.ir.errors import OutOfMemoryError
from genesis.ir.shapes import Shape, numel
from genesis.ir.symbolic_sizes import Size

MOST_BYTES = 1 << 48  # the address space of a process on today's processors
_NO_ATTRS: Options = {}


def check_size(name: str, shape: Shape, dtype: DType) -> None:
    """Raise OutOfMemoryError for a tensor of more bytes than can be addressed."""
    size = numel(shape) * dtype.itemsize
    if size > MOST_BYTES:
        raise OutOfMemoryError(
            f"{name}: a {dtype.name} tensor of shape {shape} takes {size:,} bytes; want at most {MOST_BYTES:,}")


class Node:
    """One operation: its name, input positions, static attributes, and the result's shape and dtype.

    `differentiable` says that a gradient may flow through it: it is floating or complex, it was recorded with gradients
    enabled, and it depends on a variable. For nodes that `derive` adds, `origin` is the position of the value whose
    gradient rule added it, else -1; it does not affect the computation.
    """

    __slots__ = ("attrs", "differentiable", "dtype", "inputs", "op", "origin", "shape")

    def __init__(
        self, op: str, inputs: tuple[int, ...], attrs: Options, shape: Shape, dtype: DType, differentiable: bool = False,
        origin: int = -1,
    ) -> None:
        self.op = op
        self.inputs = inputs
        self.attrs = attrs
        self.shape = shape
        self.dtype = dtype
        self.differentiable = differentiable
        self.origin = origin

    @property
    def numel(self) -> int:
        return numel(self.shape)

    @property
    def nbytes(self) -> int:
        return numel(self.shape) * self.dtype.itemsize

    def __reduce__(self) -> tuple[object, ...]:
        return Node, (self.op, self.inputs, self.attrs, self.shape, self.dtype, self.differentiable, self.origin)

    def renumbered(self, inputs: tuple[int, ...]) -> Node:
        """The same operation with other inputs."""
        if inputs == self.inputs:
            return self
        return Node(self.op, inputs, self.attrs, self.shape, self.dtype, self.differentiable)

    def key(self) -> Key:
        """Equal for nodes that compute the same value (shape and dtype follow from it and the inputs)."""
        attrs: Key
        if self.op == "constant":
            attrs = _named(self.attrs["value"])
        elif self.op == "view":
            attrs = (self.attrs["strides"], self.attrs["offset"], self.attrs.get("barrier"))  # independent of the view's name
        else:
            attrs = tuple(self.attrs.items())
        return (self.op, self.inputs, attrs, self.dtype.name, self.shape)


class Graph:
    """A growing list of nodes. With `grad_enabled` off, added nodes are not differentiable."""

    __slots__ = ("_literals", "grad_enabled", "nodes")

    def __init__(self, nodes: list[Node] | None = None, grad_enabled: bool | None = True) -> None:
        self.nodes: list[Node] = [] if nodes is None else nodes
        self.grad_enabled = bool(grad_enabled)
        self._literals: dict[Key, int] = {}

    def __len__(self) -> int:
        return len(self.nodes)

    def add(
        self, op: str, inputs: Sequence[Value | int], shape: Shape, dtype: DType, attrs: Options = _NO_ATTRS,
        differentiable: bool | None = None,
    ) -> Value:
        """Append a node and return its Value. Raises OutOfMemoryError for a value beyond the address space."""
        if op != "view" and numel(shape) * dtype.itemsize > MOST_BYTES:
            check_size(op, shape, dtype)
        nodes = self.nodes
        positions = tuple([i if isinstance(i, int) else i.index for i in inputs])
        if differentiable is None:
            differentiable = self.grad_enabled and dtype.category >= 2 and any([nodes[i].differentiable for i in positions])
        nodes.append(Node(op, positions, attrs, shape, dtype, differentiable))
        return Value(self, len(nodes) - 1)

    def constant(self, value: complex, dtype: DType, weak: bool = False) -> Value:
        """A 0-d literal. A `weak` one is a Python scalar: it does not widen the other operand."""
        refuse_complex_number("a constant", value, dtype)
        value = plain_number(value)
        key = _named(value), dtype, weak
        return self.once(key, lambda: self.add("constant", (), (), dtype, {"value": value, "weak": weak}))

    def once(self, key: Key, add: Callable[[], Value]) -> Value:
        """The Value that `add` adds, one for all with the same key: gradient rules name the same numbers again and again."""
        index = self._literals.get(key)
        if index is None:
            index = self._literals[key] = add().index
        return Value(self, index)

    def value(self, index: int) -> Value:
        return Value(self, index)


def plain_number(number: complex) -> complex:
    """A number as one of Python's own classes: another one's `repr` may not tell its numbers apart."""
    kind = next((kind for kind in _NUMBERS if isinstance(number, kind)), None)
    return number if kind is None or number.__class__ in _NUMBERS else kind.__pos__(number)  # type: ignore[arg-type]


def _named(number: complex) -> Key:
    """What tells a number from others in tables: -0.0 is not 0.0. The text of a symbolic size is that of an integer."""
    return number if number.__class__ is Size else repr(number)


_NUMBERS = bool, int, float, complex


class Value:
    """A handle on one node; definitions and gradient rules compute with Values."""

    __slots__ = ("graph", "index")

    def __init__(self, graph: Graph, index: int) -> None:
        self.graph = graph
        self.index = index

    if TYPE_CHECKING:  # genesis.ops attaches the operators

        def __add__(self, other: Value | Scalar, /) -> Value: ...

        __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __and__ = __or__ = __xor__ = __add__
        __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __rand__ = __add__
        __lt__ = __le__ = __gt__ = __ge__ = __add__

        def __eq__(self, other: object, /) -> Value: ...  # type: ignore[override]

        def __ne__(self, other: object, /) -> Value: ...  # type: ignore[override]

        def __neg__(self) -> Value: ...

        __abs__ = __invert__ = __neg__

    @property
    def node(self) -> Node:
        return self.graph.nodes[self.index]

    @property
    def shape(self) -> Shape:
        return self.graph.nodes[self.index].shape

    @property
    def dtype(self) -> DType:
        return self.graph.nodes[self.index].dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def is_scalar(self) -> bool:
        """True for a Python scalar in the graph, baked or a slot."""
        return bool(self.node.attrs.get("weak"))

    def __repr__(self) -> str:
        return f"%{self.index}: {self.dtype.name}{list(self.shape)}"


def format_node(index: int, node: Node) -> str:
    """`%3 = add(%1, %2) : float32[4, 8]`"""
    parts = [f"%{i}" for i in node.inputs]
    parts += [f"{name}={value!r}" for name, value in node.attrs.items() if name not in ("weak", "label", "body")]
    label = node.attrs.get("label", node.op)
    return f"%{index} = {label}({', '.join(parts)}) : {node.dtype.name}{list(node.shape)}"


def format_nodes(nodes: Sequence[Node], indices: Sequence[int] | None = None, note: Callable[[int], str] | None = None) -> str:
    """The nodes at `indices` (all, if None), each followed by `note(index)` as a comment."""
    chosen = range(len(nodes)) if indices is None else indices
    lines = [format_node(i, nodes[i]) for i in chosen]
    if note is not None:
        width = max(map(len, lines), default=0)
        lines = [f"{line:<{width}}  # {note(i)}" if note(i) else line for line, i in zip(lines, chosen, strict=True)]
    return "\n".join(["\n".join([line, *_body_lines(nodes[i])]) for line, i in zip(lines, chosen, strict=True)])


def _body_lines(node: Node) -> list[str]:
    """The nodes of the step of a loop over time, numbered among themselves."""
    return ["    " + format_node(k, Node(op, inputs, dict(attrs), shape, NAMED[dtype]))
            for k, (op, inputs, attrs, shape, dtype) in enumerate(node.attrs.get("body", [()])[0])]


class VerificationError(AssertionError):
    """A graph violates the IR's rules after a pass; `index` is the faulty node's position, if there is one."""

    def __init__(self, message: str, index: int | None = None) -> None:
        super().__init__(message)
        self.index = index


def verify(nodes: Sequence[Node], outputs: Iterable[int]) -> None:
    """Raise VerificationError unless inputs point backwards, shapes are tuples of extents and outputs exist."""
    for index, node in enumerate(nodes):
        for i in node.inputs:
            if not 0 <= i < index:
                raise VerificationError(f"%{index} {node.op} reads %{i}, which does not come before it")
        if not isinstance(node.shape, tuple) or any(not isinstance(e, int | Size) or e < 0 for e in node.shape):
            raise VerificationError(f"%{index} {node.op} has shape {node.shape!r}")
    for index in outputs:
        if not 0 <= index < len(nodes):
            raise VerificationError(f"output %{index} does not exist")
