"""Saved values that changed: backward refuses to read what an in-place operation wrote over.

Arrays are immutable, so the gradient could be computed; but it would be that of values which the program no longer
shows. As in PyTorch, the program has to say what it means: `clone()` before, or write through `.data`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from genesis.autograd.calls import node_name
from genesis.ir.graph import Node
from genesis.tracing.source_line import resolve_line
from genesis.tracing.trace import Change, Trace, version_of

__all__ = ["ChangedError", "check_versions"]

_SHARING = {"custom", "detach", "variable", "view"}  # their results lie in the storage of their first input


class ChangedError(RuntimeError):
    """A value that backward needs was changed in place."""


def check_versions(source: Trace, reads: Mapping[int, Sequence[int]]) -> None:
    """Raise ChangedError if a rule (position -> the positions that it reads) reads what was written over since."""
    changed = source.backward.changed
    if not (changed or source.done) and [*map(version_of, source.inputs)] == [*source.versions.values()]:
        return
    for index, version in source.versions.items():
        array = source.input_at.get(index) or source.backward.saved.get(index)
        if array is not None and (memory := array.memory) is not None and memory.buffer.version != version:
            changed = {**changed, index: memory.buffer.change}
    if not changed:
        return
    for reader, places in reads.items():
        for place in places:
            for stored in _sharing_storage(source.nodes, place):
                if stored in changed and not _is_own(changed[stored], source, reader):
                    raise ChangedError(_message(source, reader, changed[stored]))


def _sharing_storage(nodes: Sequence[Node], index: int) -> Iterator[int]:
    """A value, and those that it is a view of."""
    yield index
    while nodes[index].op in _SHARING:
        index = nodes[index].inputs[0]
        yield index


def _is_own(change: Change | None, source: Trace, reader: int) -> bool:
    """Whether `reader` belongs to the very call that made the change: `x.mul_(w)` reads what x held before."""
    return change is not None and change.trace() is source and reader >= change.call[0]


def _message(source: Trace, reader: int, change: Change | None) -> str:
    by = f", {change.call[-1][0].name}{_where(resolve_line(*change.call[1:3]))}" if change else ""
    return (
        f"backward: {node_name(source, reader)}{_where(source.line_of(reader))} needs a value that has been modified by an "
        f"inplace operation{by}; clone() the tensor before it is changed"
    )


def _where(line: tuple[str, int] | None) -> str:
    return f" (at {line[0]}:{line[1]})" if line else ""
