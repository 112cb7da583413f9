"""A lowered graph as JSON: a table for each kind of record, a list for each of its fields.

Records refer to one another by row numbers, and equal records share a row. Tables are written and read by columns, as a list of
thousands of numbers is checked in one step. Reading checks the type of each field, and that rows and values exist. It can build
only the kinds of records below, whatever the file says. A kernel's text is not stored: it follows from the kernel.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice
from operator import attrgetter
from typing import Any, NamedTuple

from genesis.ir.dtypes import NAMED, DType
from genesis.ir.graph import Node, VerificationError, format_node, verify
from genesis.ir.shapes import numel
from genesis.lower import Lowered
from genesis.lower.build import KernelCall
from genesis.lower.group import Choice, Decisions, Unfused
from genesis.lower.kernel import VALUE_WORDS, Access, Instruction, Kernel, KernelArg
from genesis.lower.schedule import Location, Schedule
from genesis.lower.stages import HostCall, Loop, Matrix, Product
from genesis.lower.target import Target
from genesis.ops.layout import Layout
from genesis.ops.registry import PRIMITIVES
from genesis.runtime.digest import by_value

Json = Any  # None, a truth, a number, a string, or a list or dict of these


def write_tables(lowered: Lowered) -> bytes:
    """Serialize a graph. Raises TypeError if it holds anything but `RECORDS`, numbers and names."""
    tables = _Writer()
    tables.numbers("Lowered", [lowered])
    columns = {name: [*zip(*rows, strict=True)] or [()] * len(RECORDS[name].fields) for name, rows in tables.rows.items()}
    return json.dumps(columns, separators=(",", ":")).encode()


def read_tables(content: bytes, target: Target) -> Lowered:
    """Deserialize a graph that was lowered for `target`. Raises ValueError for invalid bytes."""
    try:
        columns: Mapping[str, Sequence[Sequence[Json]]] = json.loads(content)
        tables: _Records = {}
        for name, record in RECORDS.items():
            fields = [field.read(column, tables) for field, column in zip(record.fields, columns[name], strict=True)]
            tables[name] = [record.build(*row) for row in zip(*fields, strict=True)]
        [lowered] = tables["Lowered"]
        verify(lowered.nodes, [word.value for word in tables["KernelArg"] if word.kind in VALUE_WORDS])
    except Exception as problem:  # any problem with a file is a miss
        raise ValueError(f"no lowered graph: {problem or type(problem).__name__}") from problem
    found: Lowered = lowered._replace(target=target)
    return found


def write_nodes(nodes: Sequence[Node]) -> Json:
    """A graph as JSON's lists. Raises TypeError for a node with other attributes than numbers, names, dtypes and tuples."""
    return [
        [node.op, [*node.inputs], [[name, _write_any(value)] for name, value in node.attrs.items()], [*node.shape],
         node.dtype.name]
        for node in nodes
    ]


def read_nodes(content: Json) -> list[Node]:
    """The graph. Raises ValueError for other lists."""
    try:
        nodes = [
            Node(op, tuple(inputs), {name: _read_any(value) for name, value in attrs}, tuple(shape), NAMED[dtype])
            for op, inputs, attrs, shape, dtype in content
        ]
        verify(nodes, [])
        verify_layouts(nodes)
    except Exception as problem:
        raise ValueError(f"no graph: {problem or type(problem).__name__}") from problem
    return nodes


def verify_layouts(nodes: Sequence[Node]) -> None:
    """Raise VerificationError for a node whose shape, strides or offset lead beyond what it reads."""
    for index, node in enumerate(nodes):
        shapes, kind = [nodes[i].shape for i in node.inputs], PRIMITIVES[node.op].kind
        fits = True
        if node.op in ("view", "put"):
            shape, strides, offset = (node.attrs[name] for name in ("shape", "strides", "offset"))
            steps = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
            last = offset + sum(max(step, 0) for step in steps)
            fits = 0 in shape or (offset + sum(min(step, 0) for step in steps) >= 0 and last < numel(shapes[0]))
            fits = fits and (node.shape == shape if node.op == "view" else (node.shape, shape) == tuple(shapes))
        elif kind == "elementwise":
            fits = all(shape == node.shape for shape in shapes)
        elif node.op == "matmul":
            (*batch, m, k), (*other, terms, n) = shapes
            fits = (batch, k, node.shape) == (other, terms, (*batch, m, n))
        if not fits:
            raise VerificationError(f"{format_node(index, node)} does not fit its inputs of {shapes}", index)


class _Writer:
    """The rows of each table."""

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[Json, ...]]] = {name: [] for name in RECORDS}
        self._equal: dict[str, dict[bytes, int]] = {name: {} for name in RECORDS}
        self._met: dict[str, dict[int, int]] = {name: {} for name in RECORDS}  # by identity: the graph keeps the records alive

    def numbers(self, name: str, records: Sequence[Any]) -> Sequence[int]:
        """The numbers of the rows with the records' fields, existing ones or new ones."""
        kind, rows = RECORDS[name], self.rows[name]
        if not kind.shared:
            rows += self._rows(kind, records)
            return range(len(rows) - len(records), len(rows))
        met, equal = self._met[name], self._equal[name]
        identities = [*map(id, records)]
        new = dict(zip(identities, records, strict=True))
        if met:
            new = {identity: record for identity, record in new.items() if identity not in met}
        for identity, row in zip(new, self._rows(kind, [*new.values()]), strict=True):
            number = met[identity] = equal.setdefault(by_value(row), len(rows))
            if number == len(rows):
                rows.append(row)
        return [*map(met.__getitem__, identities)]

    def _rows(self, kind: Record, records: Sequence[Any]) -> Sequence[tuple[Json, ...]]:
        columns = zip(*map(kind.parts, records), strict=True)
        written = [field.write(column, self) for field, column in zip(kind.fields, columns, strict=True)] if records else []
        return [*zip(*written, strict=True)]


_Records = dict[str, Sequence[Any]]  # the records read so far, by table


class Field(NamedTuple):
    """Writes and reads a column. Writing raises TypeError for other values than it takes, reading an exception for invalid
    data."""

    write: Callable[[Sequence[Any], _Writer], Sequence[Json]]
    read: Callable[[Sequence[Json], _Records], Iterable[Any]]


class Record(NamedTuple):
    """A kind of record: its fields, its constructor, its fields' values, and whether equal ones share a row."""

    fields: tuple[Field, ...]
    build: Callable[..., Any]
    parts: Callable[[Any], Iterable[Any]] = tuple
    shared: bool = True


# ---- kinds of fields ----


def _of_types(*types: type) -> Field:
    def checked(cells: Sequence[Json], tables: object) -> Sequence[Json]:
        if not set(map(type, cells)) <= {*types}:
            raise TypeError(f"want {types}")
        return cells

    return Field(checked, checked)


def _number_of(count: Callable[[_Records], int]) -> Callable[[Sequence[Json], _Records], Sequence[int]]:
    """Reads indices below `count`."""
    def read(cells: Sequence[Json], tables: _Records) -> Sequence[int]:
        if _INT.read(cells, tables) and not 0 <= min(cells) <= max(cells) < count(tables):
            raise ValueError(f"{min(cells)} to {max(cells)} of {count(tables)}")
        return cells

    return read


def _row_of(name: str) -> Field:
    numbers = _number_of(lambda tables: len(tables[name]))
    return Field(
        lambda column, tables: tables.numbers(name, column),
        lambda cells, tables: map(tables[name].__getitem__, numbers(cells, tables)))


def _optional(field: Field) -> Field:
    def where_present(convert: Callable[..., Iterable[Any]]) -> Callable[..., list[Any]]:
        def converted(cells: Sequence[Any], tables: Any) -> list[Any]:
            present = iter(convert([cell for cell in cells if cell is not None], tables))
            return [None if cell is None else next(present) for cell in cells]

        return converted

    return Field(where_present(field.write), where_present(field.read))


def _many(item: Field, container: Callable[[Iterable[Any]], Any] = tuple) -> Field:
    """Any number of items, all of one kind."""
    def write(column: Sequence[Any], tables: _Writer) -> Sequence[Json]:
        items = iter(item.write([*chain.from_iterable(column)], tables))
        return [tuple(islice(items, len(cell))) for cell in column]

    def read(cells: Sequence[Json], tables: _Records) -> Iterable[Any]:
        items = iter(item.read([*chain.from_iterable(_LIST.read(cells, tables))], tables))
        return [container(islice(items, len(cell))) for cell in cells]

    return Field(write, read)


def _each(*items: Field) -> Field:
    """A tuple of one item of each kind."""
    def by_column(cells: Sequence[Any]) -> Iterable[Any]:
        return zip(*cells, strict=True) if cells else [()] * len(items)

    def write(column: Sequence[Any], tables: _Writer) -> Sequence[Json]:
        return [*zip(*[item.write(part, tables) for item, part in zip(items, by_column(column), strict=True)], strict=True)]

    def read(cells: Sequence[Json], tables: _Records) -> Iterable[Any]:
        columns = by_column([*_LIST.read(cells, tables)])
        return zip(*[item.read(column, tables) for item, column in zip(items, columns, strict=True)], strict=True)

    return Field(write, read)


def _pairs(key: Field, value: Field) -> Field:
    """A dict."""
    pairs = _many(_each(key, value), dict)
    return Field(lambda column, tables: pairs.write([part.items() for part in column], tables), pairs.read)


def _one_of(*names: str) -> Field:
    """A record of one of these tables."""
    rows = {name: _row_of(name) for name in names}

    def write(column: Sequence[Any], tables: _Writer) -> Sequence[Json]:
        of_kind: dict[str, list[Any]] = {}
        for record in column:
            of_kind.setdefault(type(record).__name__, []).append(record)
        numbers = {name: iter(rows[name].write(records, tables)) for name, records in of_kind.items()}
        return [(name := type(record).__name__, next(numbers[name])) for record in column]

    def read(cells: Sequence[Json], tables: _Records) -> Iterable[Any]:
        return [next(iter(rows[name].read([number], tables))) for name, number in cells]

    return Field(write, read)


def _write_any(part: Any) -> Json:
    if type(part) in _ATOMS:
        return part
    if type(part) is tuple:
        return tuple([_write_any(one) for one in part])
    if type(part) is DType:
        return {"dtype": part.name}
    raise TypeError(f"{part!r:.80} is none of {_ATOMS}")


def _read_any(cell: Json) -> Any:
    if type(cell) is list:
        return tuple([_read_any(one) for one in cell])
    return NAMED[cell["dtype"]] if type(cell) is dict else cell


_ATOMS = frozenset((type(None), bool, int, float, str))
_BOOL, _INT, _STR, _LIST = (_of_types(kind) for kind in (bool, int, str, list))
_INTS = _many(_INT)
_ANY = Field(  # numbers, names, dtypes, and tuples of them
    lambda column, tables: [*map(_write_any, column)], lambda cells, tables: map(_read_any, cells))
_ATTRS = _many(_each(_STR, _ANY))
_DTYPE = Field(lambda column, tables: [dtype.name for dtype in column], lambda cells, tables: map(NAMED.__getitem__, cells))
_VALUE = Field(_INT.write, _number_of(lambda tables: len(tables["Node"])))
_VALUES = _many(_VALUE)


# ---- kinds of records; each refers only to kinds before it ----


class _Code(NamedTuple):
    """The code that kernels over different values share, and the first kernel for each list of roles of words."""

    axes: tuple[tuple[int, bool], ...]
    lane: int | None
    unrolled: Mapping[int, int]
    tiled: int | None
    instructions: tuple[Instruction, ...]
    first: dict[tuple[str, ...], Kernel]


def _kernel(code: _Code, words: tuple[KernelArg, ...], origins: tuple[int, ...]) -> Kernel:
    # The text depends on the code and the roles of words: it is written and hashed once for kernels that share them.
    roles = tuple([word.role for word in words])
    if roles not in code.first:
        code.first[roles] = Kernel(code.axes, code.lane, code.instructions, words, code.unrolled, code.tiled, origins)
    kernel = code.first[roles].filled(words)
    kernel.origins = origins
    return kernel


_parts_of_node = attrgetter("op", "inputs", "attrs", "shape", "dtype", "differentiable")

RECORDS = {
    "Attrs": Record((_ATTRS,), dict, lambda attrs: (attrs.items(),)),
    "Node": Record((_STR, _INTS, _row_of("Attrs"), _INTS, _DTYPE, _BOOL), Node,
                   _parts_of_node, shared=False),
    "Layout": Record((_INTS, _INTS, _INT), Layout),
    "Access": Record((_INT, _many(_of_types(int, str)), _DTYPE), Access),
    "Instruction": Record(
        (_STR, _INTS, _DTYPE, _STR, _many(_INT, frozenset), _INT, _optional(_row_of("Access")), _ATTRS), Instruction),
    "KernelArg": Record((_STR, _ANY, _ANY), KernelArg),
    "Code": Record(
        (_many(_each(_INT, _BOOL)), _optional(_INT), _pairs(_INT, _INT), _optional(_INT), _many(_row_of("Instruction"))),
        lambda *parts: _Code._make([*parts, {}]),
        lambda kernel: (kernel.axes, kernel.lane, kernel.unrolled, kernel.tiled, kernel.instructions)),
    "Kernel": Record((_row_of("Code"), _many(_row_of("KernelArg")), _VALUES), _kernel,
                     lambda kernel: (kernel, kernel.words, kernel.origins)),
    "KernelCall": Record((_row_of("Kernel"), _INTS, _VALUES, _VALUES, _VALUES), KernelCall),
    "Matrix": Record((_VALUE, _row_of("Layout"), _INTS, _each(_INT, _INT)), Matrix),
    "Product": Record(
        (*[_row_of("Matrix")] * 3, _INTS, _each(_INT, _INT, _INT), _STR, _many(_row_of("KernelCall")), _BOOL), Product),
    "HostCall": Record((_VALUE, _many(_each(_VALUE, _row_of("Layout"))), _STR, _BOOL), HostCall),
    "Loop": Record((_many(_one_of("KernelCall", "Product")), _INT, _INT, _VALUES, _INT, _INT), Loop),
    "Location": Record((_STR, _INT), Location),
    "Schedule": Record(
        (_many(_many(_one_of("KernelCall", "Product", "HostCall", "Loop"), list), list), _pairs(_VALUE, _row_of("Location")),
         _INT, _pairs(_VALUE, _INT)), Schedule),
    "Unfused": Record((_VALUE, _VALUE, _STR), Unfused),
    "Choice": Record((_VALUE, _BOOL, _INT), Choice),
    "Decisions": Record((_many(_row_of("Unfused"), list), _many(_row_of("Choice"), list)), Decisions),
    "Lowered": Record(
        (_many(_row_of("Node"), list), _many(_INT, list), _many(_VALUE, list), _many(_each(_VALUE, _row_of("Layout")), list),
         _row_of("Schedule"), _row_of("Decisions"), _many(_each(_INT, _INT), list)),
        lambda *parts: Lowered._make([*parts, Target(1)]), lambda lowered: lowered[:-1]),  # the target is the reader's
}
