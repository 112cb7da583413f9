"""The parts of complex tensors, which share their storage, and conjugates."""

from __future__ import annotations

from genesis.functions.overrides import FUNCTIONS, function, inspection, overridable_method
from genesis.ir.dtypes import float16, float32, float64
from genesis.ir.errors import ArgumentError, ArgumentTypeError
from genesis.ops.registry import OPERATIONS
from genesis.tensor.complex_views import conjugate_view, part_view
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor, attribute, method
from genesis.tensor.in_place import in_place
from genesis.tensor.out import takes_out


@inspection
def is_complex(input: Tensor) -> bool:
    """Whether the dtype is a complex one.

    >>> genesis.is_complex(genesis.tensor([1j]))
    True
    """
    return input.dtype.is_complex


@attribute
def real(input: Tensor) -> Tensor:
    """The real parts; a real tensor itself.

    >>> genesis.real(genesis.tensor([1 + 2j]))
    tensor([1.])
    """
    return part_view(input, "real_parts") if input.dtype.is_complex else input


@attribute
def imag(input: Tensor) -> Tensor:
    """The imaginary parts. Raises TypeError for a real tensor.

    >>> genesis.imag(genesis.tensor([1 + 2j]))
    tensor([2.])
    """
    if not input.dtype.is_complex:
        raise ArgumentTypeError(f"imag: wants a complex tensor, got {input.dtype.name}, whose imaginary parts are zeros")
    return part_view(input, "imaginary_parts")


for _name, _part in ("real", real), ("imag", imag):
    assert _part.fget is not None
    FUNCTIONS[_name] = _part.fget
    setattr(Tensor, _name, _part.setter(lambda self, value, part=_name: getattr(self, part).copy_(value)))  # type: ignore[misc]


@function()
def view_as_real(input: Tensor) -> Tensor:
    """The parts of a complex tensor along a new last axis, in its storage. Raises TypeError for a real tensor.

    >>> z = genesis.tensor([1 + 2j])
    >>> genesis.view_as_real(z).mul_(2), z
    (tensor([[2., 4.]]), tensor([2.+4.j]))
    """
    if not input.dtype.is_complex:
        raise ArgumentTypeError(f"view_as_real: wants a complex tensor, got {input.dtype.name}")
    return part_view(input, "view_as_real")


@function()
def view_as_complex(input: Tensor) -> Tensor:
    """The pairs along the last axis of a real tensor as complex numbers, in its storage.

    Raises TypeError for other dtypes than float16, float32 and float64, ValueError unless the last axis has extent 2 and
    stride 1.

    >>> genesis.view_as_complex(genesis.tensor([[1.0, 2.0]]))
    tensor([1.+2.j])
    """
    if input.dtype not in (float16, float32, float64):
        raise TypeError(f"view_as_complex: wants a tensor of float16, float32 or float64, got {input.dtype.name}")
    return part_view(input, "view_as_complex")


@inspection
def is_conj(input: Tensor) -> bool:
    """Whether the tensor is lazily conjugated: `conj()` shares storage and conjugates on reading.

    >>> z = genesis.tensor([1 + 2j])
    >>> z.conj().is_conj(), z.conj().conj().is_conj()
    (True, False)
    """
    return input._element_map == "conjugates"


@function()
@method
def is_neg(input: Tensor) -> bool:
    """Whether the tensor is lazily negated, such as the imaginary part of a lazy conjugate.

    >>> genesis.tensor([1 + 2j]).conj().imag.is_neg()
    True
    """
    return input._element_map == "neg"


@overridable_method
def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself, or the computed copy of a lazily conjugated one.

    >>> genesis.tensor([1 + 2j]).conj().resolve_conj().numpy()
    array([1.-2.j], dtype=complex64)
    """
    return input.clone() if input.is_conj() else input


@overridable_method
def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself, or the computed copy of a lazily negated one.

    >>> genesis.tensor([1 + 2j]).conj().imag.resolve_neg().numpy()
    array([-2.], dtype=float32)
    """
    return input.clone() if input.is_neg() else input


@overridable_method
def conj(input: Tensor) -> Tensor:
    """The conjugates, lazily, in the tensor's storage; a real tensor itself.

    >>> z = genesis.tensor([1 + 2j, 3])
    >>> z.conj().mul_(1j), z
    (tensor([2.+1.j, 0.+3.j]), tensor([2.-1.j, 0.-3.j]))
    """
    if not input.dtype.is_complex:
        return input
    if isinstance(input, CompositeTensor):
        return call(OPERATIONS["conjugates"], (input,))
    return conjugate_view(input)


@overridable_method
@takes_out
def conj_physical(input: Tensor) -> Tensor:
    """The conjugates; a real tensor itself.

    >>> genesis.conj_physical(genesis.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return call(OPERATIONS["conjugates"], (input,)) if input.dtype.is_complex else input


@method
def conj_physical_(self: Tensor) -> Tensor:
    """Conjugate in place; a real tensor stays the same."""
    return in_place(self, OPERATIONS["conjugates"]) if self.dtype.is_complex else self


@overridable_method
def adjoint(input: Tensor) -> Tensor:
    """The conjugate transpose of the last two axes.

    >>> genesis.adjoint(genesis.tensor([[1j, 2], [3, 4]]))
    tensor([[0.-1.j, 3.-0.j],
            [2.-0.j, 4.-0.j]])
    """
    return input.mT.conj()


@attribute
def mH(self: Tensor) -> Tensor:
    """The conjugate transpose of the last two axes."""
    return self.adjoint()


@attribute
def H(self: Tensor) -> Tensor:
    """The conjugate transpose of a matrix."""
    if self.ndim not in (0, 2):
        raise ArgumentError(f"H: wants a matrix, got shape {self.shape}")
    return self.T.conj()
