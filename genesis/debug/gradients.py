"""A record of the steps of backward: their order and the shapes of their gradients."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple, Self

from genesis.autograd.hooks import GradientEvent, add_observer, observers, remove_observer
from genesis.ir.annotations import AnyFunction, Tree
from genesis.ir.shapes import Shape
from genesis.tensor.handle import Tensor
from genesis.tracing.source_line import line_name


class GradientRecord(NamedTuple):
    """A step of backward: its number, the node, the shapes of incoming and outgoing gradients (None for arguments without one),
    and the operation's file and line.
    """

    order: int
    name: str
    grad_output_shapes: tuple[Shape | None, ...]
    grad_input_shapes: tuple[Shape | None, ...]
    line: tuple[str, int] | None

    def __str__(self) -> str:
        where = f"  {line_name(self.line)}" if self.line else ""
        return f"{self.order:3} {self.name}: {_shapes(self.grad_output_shapes)} -> {_shapes(self.grad_input_shapes)}{where}"


class record_grad_function:
    """Records this thread's backward passes: as a context or a decorator, or switched on by True and off by False.

    It is a sequence of GradientRecords; `str` of it is a table.

    >>> x = genesis.tensor([1., 2.], requires_grad=True)
    >>> with genesis.debug.record_grad_function() as record:
    ...     (x * 3).sum().backward()
    >>> [step.name for step in record]
    ['SumBackward', 'MulBackward', 'AccumulateGrad']
    >>> record[0].grad_output_shapes, record[0].grad_input_shapes
    (((),), ((2,),))
    """

    def __init__(self, switch: bool | AnyFunction | None = None) -> None:
        self.records: list[GradientRecord] = []
        self._function = switch if callable(switch) else None
        if self._function is not None:
            functools.update_wrapper(self, self._function)
        elif switch is True:
            add_observer(self)
        elif switch is False:
            for recorder in observers(record_grad_function):
                remove_observer(recorder)
                self.records += recorder.records

    def __enter__(self) -> Self:
        add_observer(self)
        return self

    def __exit__(self, *problem: object) -> None:
        remove_observer(self)

    def __call__(self, *args: Tree, **kwargs: Tree) -> Tree:
        if self._function is None:
            (function,) = args
            return record_grad_function(function)
        with self:
            return self._function(*args, **kwargs)

    def observe(self, event: GradientEvent) -> None:
        """Record a step of backward."""
        self.records.append(GradientRecord(
            len(self.records), event.name, tuple(map(_shape, event.gradients)), tuple(map(_shape, event.passed)), event.line))

    def finish(self) -> None:
        """A backward pass has ended."""

    def __len__(self) -> int: return len(self.records)
    def __iter__(self) -> Iterator[GradientRecord]: return iter(self.records)
    def __getitem__(self, index: int) -> GradientRecord: return self.records[index]
    def __str__(self) -> str: return "\n".join(map(str, self.records))


def _shape(gradient: Tensor | None) -> Shape | None:
    return None if gradient is None else gradient.shape


def _shapes(shapes: tuple[Shape | None, ...]) -> str:
    return ", ".join("-" if s is None else str(s) for s in shapes) or "-"
