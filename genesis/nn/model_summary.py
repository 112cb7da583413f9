"""A table of a model's modules, with result shapes, parameters and multiplications."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from genesis.functions.creation import zeros
from genesis.ir.annotations import Tree
from genesis.nn.module import Module
from genesis.ops.loop_body import multiplications
from genesis.pytree import leaves_of
from genesis.runtime.installation import readable
from genesis.tensor.handle import Tensor
from genesis.tracing.scopes import ScopeNames
from genesis.tracing.state import current_trace, recording

__all__ = ["ModelSummary", "ModuleSummary", "summary"]


class ModuleSummary(NamedTuple):
    """A module: its path ("" for the model), its class, the result shapes of its last call (none if it was not called), the
    number of parameter elements here and below, of trainable ones, and the multiplications of products here and below; None if
    unknown, because the call read a value.

    >>> genesis.nn.summary(genesis.nn.Linear(8, 4), genesis.ones(2, 8)).rows[0]
    ModuleSummary(path='', kind='Linear', shapes=((2, 4),), parameters=36, trainable=36, multiplications=64)
    """

    path: str
    kind: str
    shapes: tuple[tuple[int, ...], ...]
    parameters: int
    trainable: int
    multiplications: int | None


class ModelSummary:
    """The result of `summary`. Prints as a table.

    Attributes:
        rows: a ModuleSummary for each module, parents first.
        parameter_bytes: the bytes of all parameters, each counted once.

    >>> genesis.nn.summary(genesis.nn.Linear(8, 4), genesis.ones(2, 8)).parameter_bytes
    144
    """

    def __init__(self, rows: list[ModuleSummary], parameter_bytes: int, depth: int | None) -> None:
        self.rows, self.parameter_bytes, self._depth = rows, parameter_bytes, depth

    def __repr__(self) -> str:
        top = self.rows[0]
        shown = [row for row in self.rows if self._depth is None or not row.path or row.path.count(".") < self._depth]
        names = [("  " * (row.path.count(".") + bool(row.path)) + row.path.rpartition(".")[2], row.kind) for row in shown]
        names[0] = (top.kind, "")
        left = [f"{name} ({kind})" if kind else name for name, kind in names]
        shapes = [", ".join(str(list(shape)) for shape in row.shapes) or "-" for row in shown]
        width, wide = max(map(len, [*left, "module"])), max(map(len, [*shapes, "result"]))
        lines = [f"{'module':<{width}}  {'result':<{wide}}  {'parameters':>12}  {'mult-adds':>14}"]
        lines += [f"{name:<{width}}  {shape:<{wide}}  {row.parameters:12,}  {_number(row.multiplications):>14}"
                  for name, shape, row in zip(left, shapes, shown, strict=True)]
        fixed = top.parameters - top.trainable
        lines += ["", f"{top.parameters:,} parameters ({readable(self.parameter_bytes)}), {fixed:,} of them fixed; "
                      f"{_number(top.multiplications)} multiplications a call"]
        return "\n".join(lines)


def summary(
    model: Module, *inputs: Tree, input_size: Sequence[Any] | None = None, depth: int | None = None, **options: Tree
) -> ModelSummary:
    """The modules of `model` during a call: result shapes, parameters, multiplications. Nothing is computed.

    The call runs in evaluation mode, without gradients; it is recorded but not evaluated.

    Args:
        inputs, options: what `model` is called with.
        input_size: instead of `inputs`, the shape of a single input, or a list of the shapes of several.
        depth: the number of printed levels; all if None.

    Raises TypeError unless exactly one of inputs and sizes is given.

    >>> nn = genesis.nn
    >>> found = nn.summary(nn.Sequential(nn.Linear(8, 4), nn.ReLU()), genesis.ones(2, 8))
    >>> [(row.path, row.kind, row.shapes, row.parameters, row.multiplications) for row in found.rows[:2]]
    [('', 'Sequential', ((2, 4),), 36, 64), ('0', 'Linear', ((2, 4),), 36, 64)]
    """
    if (input_size is None) == (not inputs and not options):
        raise TypeError("summary: wants what the model is called with, or input_size, a shape or a list of shapes")
    if input_size is not None:
        sizes = [input_size] if all(isinstance(extent, int) for extent in input_size) else input_size
        inputs = tuple([zeros(tuple(size)) for size in sizes])
    modules = [*model.named_modules()]
    with _shapes_noted(model, [module for _, module in modules]) as shapes, recording(False) as again, again:
        counted = _multiplications(model, inputs, options)
    rows = []
    for path, module in modules:
        parameters = [*module.parameters()]
        own = None if counted is None else sum(
            number for at, number in counted.items() if not path or at == path or at.startswith(path + "."))
        rows.append(ModuleSummary(
            path, type(module).__name__, shapes.get(id(module), ()), sum(p.numel() for p in parameters),
            sum(p.numel() for p in parameters if p.requires_grad), own))
    return ModelSummary(rows, sum(p.numel() * p.element_size() for p in model.parameters()), depth)


@contextmanager
def _shapes_noted(model: Module, modules: Sequence[Module]) -> Iterator[dict[int, tuple[tuple[int, ...], ...]]]:
    """A context in evaluation mode that notes the shapes of modules' results, by their ids."""
    shapes: dict[int, tuple[tuple[int, ...], ...]] = {}

    def note(module: Module, given: Tree, result: Tree) -> None:
        shapes[id(module)] = tuple([leaf.shape for leaf in leaves_of(result) if isinstance(leaf, Tensor)])

    had_hooks = ["_hooks" in vars(module) for module in modules]
    handles = [module.register_forward_hook(note) for module in modules]
    training = [module.training for module in modules]
    try:
        model.eval()
        yield shapes
    finally:
        for handle in handles:
            handle.remove()
        for module, mode, has_hooks in zip(modules, training, had_hooks, strict=True):
            module.training = mode
            if not has_hooks:
                del module._hooks  # the class's are those of all modules


def _multiplications(model: Module, inputs: Sequence[Tree], options: dict[str, Tree]) -> dict[str, int] | None:
    """Path -> multiplications of the products recorded there; None if the call breaks its trace."""
    devices = {leaf.device for leaf in leaves_of((inputs, options)) if isinstance(leaf, Tensor)}
    trace = current_trace(*devices) if len(devices) == 1 else None
    start = len(trace.nodes) if trace is not None else 0
    result = model(*inputs, **options)
    if trace is None or trace.closed or trace.done:
        return None
    names, found = ScopeNames(), defaultdict[str, int](int)
    for index in range(start, len(trace.nodes)):
        if count := multiplications(trace.nodes, trace.nodes[index]):
            found[names.path(trace.scope_of(index)).partition(".")[2]] += count
    del result
    return found


def _number(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"
