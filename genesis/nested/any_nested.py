"""What nested tensors of both layouts have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

from genesis.ir.annotations import Attributes
from genesis.ops.registry import OPERATIONS, PRIMITIVES
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.dispatch import call
from genesis.tensor.handle import CallArguments, Tensor

Rule = Callable[..., Any]
_BY_ELEMENT = {f"genesis.ops.{name}" for name in ("elementwise", "arithmetic", "activation", "special")}  # modules of rows
_ELSEWHERE = {"dropout", "clone", "to_dtype", "stop_gradient", "frexp", "nextafter", "mvlgamma", "fill"}  # rows of others
_OTHERS = {"logsumexp", "softmin", "prelu"}  # rows of theirs with axes of their own


class Ragged:
    """The extent of a ragged axis, different for each sequence. It is equal for tensors with the same sequences."""

    def __init__(self, lengths: tuple[int, ...]) -> None:
        self.lengths = lengths

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ragged) and other.lengths == self.lengths

    def __hash__(self) -> int:
        return hash(self.lengths)

    def __repr__(self) -> str:
        return "j"


class AnyNested(CompositeTensor):
    """A batch of tensors whose extents differ. Elementwise functions run on all elements at once; others have rules."""

    hint: ClassVar[str] = "to_padded_tensor() and unbind() make some"
    rules: ClassVar[dict[str, Rule]]  # by the names of operations

    is_nested = property(lambda self: True)

    @classmethod
    def rule(cls, *names: str) -> Callable[[Rule], Rule]:
        """Decorator: the rule of these operations for arguments of the class."""

        def note(function: Rule) -> Rule:
            cls.rules.update(dict.fromkeys(names, function))
            return function

        return note

    def dim(self) -> int:
        """The number of axes, the batch among them."""
        return self.ndim

    def contiguous(self, memory_format: object = None) -> Self:
        """The tensor itself."""
        return self

    def derivation(self) -> str:
        """What is printed of its derivation."""
        if self.grad_fn is not None:
            return f", grad_fn=<{type(self.grad_fn).__name__}>"
        return ", requires_grad=True" * self.requires_grad

    def computed(self, name: str, arguments: CallArguments, attributes: Attributes) -> Any:
        rule = self.rules.get(name)
        if rule is not None:
            return rule(*arguments, **attributes)
        if not _is_by_element(name):
            return super().computed(name, arguments, attributes)
        given = [self.beside(name, a) if isinstance(a, Tensor) else a for a in arguments]
        named = {key: self.beside(name, a) if isinstance(a, Tensor) else a for key, a in attributes.items()}
        found = call(OPERATIONS[name], given, named)
        return self.with_elements(found) if isinstance(found, Tensor) else type(found)(*map(self.with_elements, found))

    def beside(self, name: str, other: Tensor) -> Tensor:
        """An operand of an elementwise function for all elements of this one."""
        raise NotImplementedError


def _is_by_element(name: str) -> bool:
    """Whether an operation is elementwise."""
    primitive = PRIMITIVES.get(name)
    if primitive is not None and primitive.kind == "elementwise":
        return True
    own = OPERATIONS[name].define.__module__ in _BY_ELEMENT and name not in _OTHERS
    return own or name in _ELSEWHERE
