"""Tensors made of other tensors: they have no array of their own, and define operations on their parts.

Dispatch notices them only where it would read the array, so dense tensors pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, ClassVar, Self, SupportsIndex

from genesis.ir.annotations import Arguments, Attributes, Tree
from genesis.ir.described import Described
from genesis.ir.dtypes import DType
from genesis.runtime.devices import Device
from genesis.tensor.handle import CallArguments, Tensor, attributes_of


class NotDenseError(NotImplementedError, TypeError):
    """An operation needs a dense tensor and got another kind."""

    def __init__(self, tensor: CompositeTensor, wish: str = "") -> None:
        super().__init__(tensor, wish)
        self.tensor = tensor
        self.wish = wish

    def __str__(self) -> str:
        wish = self.wish or _first_of_ours(self.__traceback__)
        return f"{wish}: takes dense tensors, got {self.tensor.described()}; {self.tensor.hint}"


def _first_of_ours(trace: TracebackType | None) -> str:
    """The function of the library that the user called."""
    while trace is not None and not trace.tb_frame.f_globals.get("__name__", "").startswith("genesis."):
        trace = trace.tb_next
    found = "this"
    while trace is not None and (found := trace.tb_frame.f_code.co_name) == "public":  # the wrapper of overridable functions
        trace = trace.tb_next
    return found


class CompositeTensor(Tensor, Described):
    """A tensor made of other tensors. A subclass defines operations, and overrides the methods that read the array.

    Attributes:
        parts: the attributes with its tensors; gradients flow through the first.
        hint: advice for operations that are not defined for it.
    """

    parts: ClassVar[tuple[str, ...]] = ()
    hint: ClassVar[str] = ""

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """All its attributes."""
        return attributes_of(self)

    @__dict__.setter
    def __dict__(self, values: Mapping[str, Any]) -> None:
        attributes_of(self).clear()
        attributes_of(self).update(values)

    @property
    def _array(self) -> Any:  # type: ignore[override]
        raise NotDenseError(self)

    def described(self) -> str:
        """The kind and the shape, for errors."""
        raise NotImplementedError

    def computed(self, name: str, arguments: CallArguments, attributes: Attributes) -> Any:
        """The result of operation `name` on arguments with this one among them. Raises NotDenseError if it is not defined."""
        raise NotDenseError(self, name)

    def written(self, value: Tensor) -> Tensor:
        """Write `value` into the tensor; returns the tensor."""
        raise NotDenseError(self, "in-place")

    def drawn(self, draw: Callable[[Any], Tensor]) -> Any:
        """A tensor of its kind and shape with the random elements of `draw(shape)`."""
        elements = draw(self.derived_part.shape)
        moved: Any = self.to(elements.device)
        return moved.with_elements(elements)

    def moved_to(self, value: Tensor) -> None:
        """Hold the elements of `value`, perhaps of another dtype or on another device."""
        self.written(value)

    def with_elements(self, elements: Tensor) -> Self:
        """The tensor with another `derived_part`."""
        raise NotDenseError(self)

    def as_parameter(self, requires_grad: bool) -> Any:
        """The parameter with its elements."""
        raise NotDenseError(self, "Parameter")

    def part_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """(attribute, tensor) of its parts."""
        for name in self.parts:
            part = vars(self)[name]
            if part is not None:
                yield name, part

    # ---- elements ----

    @property
    def derived_part(self) -> Tensor:
        """The part through which gradients flow."""
        return vars(self)[self.parts[0]]  # type: ignore[no-any-return]

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.derived_part.dtype

    @property
    def device(self) -> Device:
        """The device of its elements."""
        return self.derived_part.device

    is_cpu = property(lambda self: self.device.type == "cpu")
    is_cuda = property(lambda self: self.device.type == "cuda")

    # ---- gradients ----

    @property
    def _requires_grad(self) -> bool:  # type: ignore[override]
        return self.derived_part._requires_grad

    @property
    def requires_grad(self) -> bool:
        """True if gradients flow to (a leaf) or through (a result) its elements."""
        return self.derived_part.requires_grad

    @requires_grad.setter
    def requires_grad(self, enabled: bool) -> None:
        if enabled and not self.derived_part.requires_grad:
            vars(self)[self.parts[0]] = self.leaf_part()
        self.derived_part.requires_grad = enabled

    def leaf_part(self) -> Tensor:
        """The `derived_part` as a leaf, separate from the tensor that it was made of."""
        return self.derived_part.detach()

    @property
    def is_leaf(self) -> bool:
        """True unless an operation that carries gradients made it."""
        return self.derived_part.is_leaf

    @property
    def grad_fn(self) -> Any:
        """The grad_fn of its elements."""
        return self.derived_part.grad_fn

    @property
    def grad(self) -> Any:
        """Its gradient, a tensor of its kind, or None."""
        gradient = self.derived_part.grad
        return None if gradient is None else self.gradient_of(gradient)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        self.derived_part.grad = None if value is None else self.seed_of(value)

    def gradient_of(self, gradient: Tensor) -> Tensor:
        """Its gradient, from that of its `derived_part`."""
        return self.with_elements(gradient)

    def seed_of(self, gradient: Tensor) -> Tensor:
        """The gradient of its `derived_part`, from its own."""
        return gradient.derived_part if isinstance(gradient, CompositeTensor) else gradient

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the accumulated gradient, or set it to zeros."""
        self.derived_part.zero_grad(set_to_none)

    def detach(self) -> Self:
        """The same elements, without a derivation."""
        return self.with_elements(self.derived_part.detach())

    def detach_(self) -> Self:
        """Drop its derivation; returns the tensor."""
        vars(self)[self.parts[0]] = self.derived_part.detach()
        return self

    data = property(lambda self: self.detach(), lambda self, value: self.moved_to(value))

    def retain_grad(self) -> None:
        """Keep this result's gradient in `.grad` after `backward`, as for leaves."""
        self.derived_part.retain_grad()

    def register_hook(self, hook: Callable[[Any], Any]) -> Any:
        """Call `hook` with its gradient, a tensor of its kind, when that is computed; the result, if any, replaces it."""

        def of_elements(gradient: Tensor) -> Tensor | None:
            changed = hook(self.gradient_of(gradient))
            return None if changed is None else self.seed_of(changed)

        return self.derived_part.register_hook(of_elements)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Any], None]) -> Any:
        """Call `hook` with this leaf after each accumulation into its `grad`."""
        return self.derived_part.register_post_accumulate_grad_hook(lambda _: hook(self))

    # ---- copies ----

    def __copy__(self) -> Self:
        result = object.__new__(type(self))
        vars(result).update(vars(self))
        return result

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        result = object.__new__(type(self))
        memo[id(self)] = result
        vars(result).update(vars(self))
        for name, part in self.part_tensors():
            vars(result)[name] = part.__deepcopy__(memo)
        return result

    def __reduce_ex__(self, protocol: SupportsIndex) -> Arguments:
        return _rebuilt, (type(self), vars(self))


def _rebuilt(kind: type[CompositeTensor], attributes: dict[str, Any]) -> CompositeTensor:
    """The tensor from a pickle."""
    result = object.__new__(kind)
    vars(result).update(attributes)
    return result


def like(tensor: Tree, part: Tensor) -> Tensor:
    """A composite tensor like `tensor` with another such part; for any other value, the part itself."""
    return tensor.with_elements(part) if isinstance(tensor, CompositeTensor) else part


def differentiated(tensor: Tensor) -> Tensor:
    """The dense tensor through which the gradients of `tensor` flow."""
    return tensor.derived_part if isinstance(tensor, CompositeTensor) else tensor
