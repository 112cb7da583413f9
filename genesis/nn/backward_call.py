"""Backward hooks of modules: the gradients of a call's results and inputs pass through them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from genesis.autograd.custom import Context
from genesis.autograd.function import Function
from genesis.ir.annotations import AnyFunction, Arguments, Tree
from genesis.tensor.handle import Tensor


class BackwardCall:
    """One call of a module with backward hooks: keeps the gradients of its results until those of its inputs arrive."""

    def __init__(self, module: object, before: Mapping[int, AnyFunction], after: Mapping[int, AnyFunction]) -> None:
        self.module, self.before, self.after = module, before, after
        self.inputs = self.outputs = _Positions(0, [])
        self.gradients: tuple[Tensor | None, ...] | None = None

    def in_(self, inputs: Arguments) -> Arguments:
        """The inputs, wrapped so that their gradients are observed."""
        self.inputs = _Positions.of(inputs)
        return self.inputs.watched(self.of_inputs, inputs)

    def out(self, output: Tree) -> Tree:
        """The module's result, a tensor or a tuple with tensors, wrapped so that its gradients are observed."""
        self.outputs = _Positions.of(as_tuple(output))
        result = self.outputs.watched(self.of_outputs, as_tuple(output))
        return result if isinstance(output, tuple) else result[0]

    def of_outputs(self, gradients: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
        """The gradients of the results, after the pre-hooks."""
        whole = self.outputs.among(gradients)
        for hook in [*self.before.values()]:
            whole = _replaced(hook(self.module, whole), whole)
        if not self.inputs.positions:  # no gradient will arrive for the inputs
            for hook in [*self.after.values()]:
                hook(self.module, self.inputs.among(()), whole)
        self.gradients = whole
        return tuple(whole[k] for k in self.outputs.positions)

    def of_inputs(self, gradients: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
        """The gradients of the inputs that require one, after the hooks; none is called if only a second derivative comes."""
        if self.gradients is None:
            return gradients
        whole, of_outputs, self.gradients = self.inputs.among(gradients), self.gradients, None
        for hook in [*self.after.values()]:
            whole = _replaced(hook(self.module, whole, of_outputs), whole)
        return tuple(whole[k] for k in self.inputs.positions)


class _Positions(NamedTuple):
    """Which of `number` values are tensors that require gradients."""

    number: int
    positions: list[int]

    @classmethod
    def of(cls, values: Arguments) -> _Positions:
        return cls(len(values), [k for k, x in enumerate(values) if isinstance(x, Tensor) and x.requires_grad])

    def watched(self, hooked: AnyFunction, values: Arguments) -> Arguments:
        """The values, with those tensors passed through a function whose gradients are `hooked`."""
        if not self.positions:
            return values
        results = as_tuple(_Watched.apply(hooked, *[values[k] for k in self.positions]))
        seen = dict(zip(self.positions, results, strict=True))
        return tuple(seen.get(k, value) for k, value in enumerate(values))

    def among(self, gradients: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
        """Gradients of those tensors, and None for the other values."""
        found = dict(zip(self.positions, gradients, strict=False))
        return tuple(found.get(k) for k in range(self.number))


class _Watched(Function):
    """Passes a module's inputs or results through."""

    @staticmethod
    def forward(context: Context, hooked: AnyFunction, *values: Tensor) -> tuple[Tensor, ...]:
        context.set_materialize_grads(False)
        context.save_variable("hooked", hooked)
        return tuple(x.view_as(x) for x in values)

    @staticmethod
    def backward(context: Context, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        return None, *context.saved_variables["hooked"](gradients)


def as_tuple(value: Tree) -> Arguments:
    return value if isinstance(value, tuple) else (value,)


def _replaced(answer: Tree, gradients: Sequence[Tensor | None]) -> tuple[Tensor | None, ...]:
    """A hook's result, after checking that it can replace `gradients`; these if it is None."""
    if answer is None:
        return tuple(gradients)
    answers = tuple(answer) if isinstance(answer, list) else as_tuple(answer)
    if len(answers) != len(gradients):
        raise RuntimeError(f"backward hook: wants {len(gradients)} gradients back, or None, got {len(answers)}")
    return answers
