"""Tensor: a handle on an array plus autograd state. No numerics live here.

Tensors that share storage share a root: a view knows the root and its layout in it, and re-reads it after writes to the root
(`views` makes them, `in_place` writes to them, `dispatch` records calls).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from genesis.ir.annotations import AnyFunction
from genesis.ir.dtypes import DType
from genesis.ir.errors import ArgumentError, ArgumentTypeError
from genesis.ir.named_layouts import NamedLayout, strided
from genesis.ir.shapes import Shape
from genesis.ops.layout import Layout, contiguous_layout
from genesis.runtime.devices import CPU, Device
from genesis.tensor.call_modes import running
from genesis.tensor.users_attributes import UsersAttributes
from genesis.tracing.memory import Memory
from genesis.tracing.recording_hooks import made_from_python, touched_gradient
from genesis.tracing.state import thread_state
from genesis.tracing.tensor_state import EXPOSED, Versions, add_gradient_holder
from genesis.tracing.trace import Array, Trace

if TYPE_CHECKING:
    from genesis.tensor.methods import Methods  # a stub of everything that is attached to the class later
else:
    Methods = object


class Storage:
    """The storage that views of a root share, so that they keep it when their root is rebound to another storage.

    Attributes:
        root: the new root of this storage once the old one is rebound; None before.
    """

    __slots__ = ("root",)
    root: Tensor | None

    def __init__(self) -> None:
        self.root = None


class TensorBase(Methods):
    """Owner of the attributes of a tensor, the library's and the user's."""


attributes_of: Callable[[Any], dict[str, Any]] = vars(TensorBase)["__dict__"].__get__  # all attributes of a tensor


class Tensor(TensorBase):
    """A multi-dimensional array of one dtype that remembers how it was made.

    Built by `genesis.tensor` and by operations. Reads like a `torch.Tensor`.
    """

    __array_priority__ = 1000  # `ndarray + tensor` is a tensor

    # Defaults of attributes that most tensors never set.
    _base: Tensor | None = None  # the root whose storage this views
    _layout: Layout | None = None  # the layout in the root
    _element_map: str | None = None  # the involution that maps the root's elements to a view's
    _storage: Storage | None = None  # of a view, and of its root once there has been a view
    _bare_root: Callable[[], Any] | None = None  # its weakly held `BareRoot`
    _origin: Callable[[], Tensor | None] | None = None  # of a bare root: the root that it stands for
    _detached: bool = False
    _detached_root: Tensor | None = None  # of a view of a detached tensor: that one, whose derivation it shares
    _versions: Versions | None = None  # a count of its own, which a root has else
    _changes: int = 0  # the version that views compare: counts writes, and other reasons to re-read
    _seen: int = 0
    _grad: Tensor | None = None
    _retains_grad: bool = False
    _is_holder: bool = False
    _hooks: dict[int, AnyFunction] | None = None  # a leaf's; those of results are the trace's
    _post_hooks: dict[int, AnyFunction] | None = None
    _node_hooks: Any = None
    _lay_as: Layout | None = None  # for a copied argument of a transform: the layout of the caller's tensor
    _stands_for: Any = None  # a leaf for a part of another: (that one, function from this one's gradient to its)
    _is_inference: bool = False  # a root made in inference mode
    _keeps_derivation: bool = False  # writes keep the derivation: gradients that create_graph leaves in .grad

    _array: Array
    _requires_grad: bool
    _result_class: type[Tensor]  # the class of results of operations on it

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """The attributes that the user set."""
        return UsersAttributes(attributes_of(self), INTERNAL)

    @__dict__.setter
    def __dict__(self, values: Mapping[str, Any]) -> None:
        given = dict(values)
        self.__dict__.clear()
        self.__dict__.update(given)

    # ---- properties ----

    @property
    def shape(self) -> Shape:
        """The extents, as a tuple of ints."""
        return self._array.node.shape

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._array.node.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._array.node.shape)

    @property
    def requires_grad(self) -> bool:
        """True if gradients flow to (a leaf) or through (a result) this tensor."""
        return self._requires_grad or (self._base is not None and _has_become_derived(self))

    @requires_grad.setter
    def requires_grad(self, enabled: bool) -> None:
        if not isinstance(enabled, bool):
            raise TypeError(f"requires_grad: wants True or False, got {type(enabled).__name__} {enabled!r:.40}")
        if enabled and is_of_inference_mode(self) and thread_state.grad_enabled is not None:
            raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
        if enabled and self.dtype.category < 2:
            raise ArgumentTypeError(
                f"requires_grad: only floating tensors can require gradients, this one is {self.dtype.name}")
        if not enabled and (self._requires_grad or self._base is not None) and not self.is_leaf:
            raise RuntimeError("requires_grad: only a leaf can stop requiring gradients; use detach()")
        self._requires_grad = enabled

    @property
    def grad(self) -> Tensor | None:
        """The gradient accumulated by `backward()`, or None; a result's, without `retain_grad()`, is None, with a warning."""
        touched_gradient(self, True)
        if self._grad is None and self._array.node.differentiable and not self._retains_grad:
            warnings.warn("The .grad attribute of a Tensor that is not a leaf Tensor is being accessed: backward fills that of "
                          "leaves alone; call retain_grad() before", stacklevel=2)
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(f"grad: wants a Tensor or None, got {type(value).__name__}")
            if value is self:
                raise ArgumentError("grad: a tensor cannot be its own gradient; assign a clone()")
            if value.shape != self.shape:
                raise ArgumentError(f"grad: shape {value.shape} does not match the tensor's {self.shape}")
            if value.dtype is not self.dtype:
                raise ArgumentTypeError(f"grad: dtype {value.dtype.name} does not match the tensor's {self.dtype.name}")
            if value.device is not self.device:
                raise RuntimeError(f"grad: is on {value.device}; want the tensor's {self.device}")
        hold_gradient(self, value)

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    @property
    def layout(self) -> NamedLayout:
        """The kind of its layout: `strided`, but for nested and sparse tensors."""
        return strided

    @property
    def storage_layout(self) -> Layout:
        """Shape, strides and offset in the elements of the storage."""
        return self._layout or contiguous_layout(self.shape)


Tensor._result_class = Tensor
LAZY = {"conjugates": "a lazily conjugated tensor", "neg": "a lazily negated tensor"}  # views with that element map, in words
F = TypeVar("F", bound=AnyFunction)
CallArguments = Sequence[Any]  # tensors, Python numbers, lists of these, and static arguments
Operand = Tensor | bool | int | float | complex | np.generic | np.ndarray  # a tensor, or what becomes one
plain_classes: set[type[Tensor]] = set()  # those that add no attribute to Tensor's: machine code reads their tensors, too
spreading: set[type[Tensor]] = set()  # classes of existing tensors whose operations return another class than Tensor


INTERNAL = frozenset({*Tensor.__annotations__, "_gradients", "_source"})  # attributes that the library sets


def note_result_class(kind: type[Tensor]) -> None:
    """Note that tensors of class `kind` exist, whose operations may return that class."""
    spreading.add(kind)


def result_class(argument: object, otherwise: type[Tensor] = Tensor) -> type[Tensor]:
    """The class of results that `argument`, a tensor or a sequence of them, determines; else `otherwise`.

    Where classes are ignored, results are plain tensors: the caller, such as a `__torch_function__`, converts them.
    """
    if running.ignores_classes:
        return otherwise
    if isinstance(argument, Tensor):
        return otherwise if argument._result_class is Tensor else argument._result_class
    if isinstance(argument, list | tuple):
        for member in argument:
            otherwise = result_class(member, otherwise)
    return otherwise


def tensor_of(array: Array, requires_grad: bool = False, kind: type[Tensor] = Tensor) -> Tensor:
    """The tensor of an array: the constructor that tracing uses."""
    tensor = _new(kind)
    tensor._array = array
    tensor._requires_grad = requires_grad
    return tensor


def share_storage(result: Tensor, root: Tensor, layout: Layout | None, element_map: str | None = None) -> None:
    """Make `result` an up-to-date view of `root`'s storage."""
    if element_map is not result._element_map:
        result._element_map = element_map
    storage = root._storage
    if storage is None:
        storage = root._storage = Storage()
    result._base, result._layout, result._seen, result._storage = root, layout, root._changes, storage


def root_of(tensor: Tensor) -> Tensor:
    """The tensor itself, or the root of a view, found anew: that may have been rebound to another storage since."""
    root = tensor._base
    if root is None:
        return tensor
    if root._origin is not None:
        return root.present()  # type: ignore[attr-defined, no-any-return]
    storage = tensor._storage
    if storage is not None and storage.root is not None:
        root = tensor._base = storage.root
        tensor._storage = root._storage
    while root._base is not None:
        root = tensor._base = root._base
    return root


def detached_root(tensor: Tensor) -> Tensor:
    """The detached tensor whose derivation a view shares, if that has not been rebound since; otherwise the tensor itself."""
    holder = tensor._detached_root
    if holder is None or holder._element_map is not None or (root := root_of(holder)) is not root_of(tensor):
        return tensor
    return holder if holder.dtype is root.dtype else tensor


def _has_become_derived(view: Tensor) -> bool:
    """Whether a gradient has been written to the root of a view since the view was looked at."""
    holder = view._detached_root if view._detached else root_of(view)
    return holder is not None and is_written_since(view, view._seen) and holder._array.node.differentiable


def is_written_since(tensor: Tensor, changes: int) -> bool:
    """Whether the storage of `tensor` has been written to since its root had counted so many `changes`."""
    return (root_of(tensor)._changes - changes) % EXPOSED != 0


def is_of_inference_mode(tensor: Tensor) -> bool:
    """Whether it, or what it views, was made in inference mode: such a tensor is written to there alone, and has no version."""
    return root_of(tensor)._is_inference


def mark_inference(result: Any) -> None:
    """Mark the results of a call in inference mode; views follow their roots."""
    for tensor in tensors_in(result if isinstance(result, tuple) else (result,)):
        tensor._is_inference = True


def all_pending(trace: Trace, result: Any, kind: type[Tensor]) -> Any:
    """The tensors for a call's results, in the tuple or named tuple of their positions."""
    if result.__class__ is int:
        array = trace.handle(result)
        return tensor_of(array, array.node.differentiable, kind)
    tensors = [all_pending(trace, r, kind) for r in result]
    return type(result)(*tensors) if hasattr(result, "_fields") else tuple(tensors)


def tensors_in(arguments: CallArguments) -> list[Tensor]:
    """The tensors among `arguments`, and in the lists and tuples among them."""
    found: list[Tensor] = []
    for argument in arguments:
        if isinstance(argument, Tensor):
            found.append(argument)
        elif argument.__class__ in (list, tuple):
            found += tensors_in(argument)
    return found


def from_values(values: np.ndarray, dtype: DType, device: Device = CPU) -> Tensor:
    """A tensor with a copy of `values`, converted to `dtype`."""
    array = Array.over(Memory.of(values, dtype, device), dtype)
    made_from_python(array)
    return new_root(array)


def new_root(array: Array, requires_grad: bool = False) -> Tensor:
    """The tensor of an array that no operation made."""
    made = tensor_of(array, requires_grad)
    if thread_state.grad_enabled is None:
        made._is_inference = True
    return made


_new = object.__new__


def hold_gradient(tensor: Tensor, gradient: Tensor | None) -> None:
    """Set `.grad`, and register the tensor in `gradient_holders`, which refers to tensors weakly."""
    if thread_state.recorder is not None:  # backward sets every gradient here
        touched_gradient(tensor, False)
    tensor._grad = gradient
    if gradient is not None and not tensor._is_holder:
        add_gradient_holder(tensor)


def method(function: F, *names: str) -> F:
    """Decorator: a function of a Tensor becomes the method of Tensor that bears its name, or has the given names."""
    for name in names or (function.__name__,):
        setattr(Tensor, name, function)
    return function


def attribute(function: Callable[[Tensor], object]) -> property:
    """Decorator: a function of a Tensor becomes the property of Tensor that bears its name."""
    made = property(function)
    setattr(Tensor, function.__name__, made)
    return made


NOT_REPLAYABLE = ("storage_layout",)
