"""Parametrizations: `register_parametrization` puts a module between the learned and the used tensor.

A parametrized module gets its own subclass, with a property that computes the tensor at each access. The learned tensors are in
`module.parametrizations`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from genesis.ir.annotations import Arguments
from genesis.nn.containers import ModuleDict, ModuleList
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import write
from genesis.tensor.views import detach, move_storage
from genesis.tracing.recording_hooks import refuse
from genesis.tracing.state import grad_mode

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "transfer_parametrizations_and_params", "type_before_parametrizations",
]
__dir__ = __all__.copy


class _Cache:
    """The tensors computed within `cached()`, by module and name."""

    depth = 0
    values: dict[tuple[int, str], Tensor] = {}  # noqa: RUF012


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor only once within the context, for tensors read several times in a forward pass.

    >>> layer = register_parametrization(genesis.nn.Linear(2, 2), "weight", genesis.nn.Tanh())
    >>> with cached():
    ...     layer.weight is layer.weight
    True
    """
    _Cache.depth += 1
    try:
        yield
    finally:
        _Cache.depth -= 1
        if not _Cache.depth:
            _Cache.values.clear()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in order, with the tensors that they are computed from.

    This is `original`, or `original0`, `original1`, .. where the first one's `right_inverse` gives several tensors.
    `register_parametrization` makes it.

    Args:
        modules: one or more parametrizations.
        original: the parameter or buffer that they stand before.
        unsafe: whether they may change dtype and shape.

    Raises ValueError for no modules and, unless `unsafe`, where the computed tensor has another dtype or shape.

    >>> layer = register_parametrization(genesis.nn.Linear(2, 2), "weight", genesis.nn.Tanh())
    >>> layer.parametrizations.weight
    ParametrizationList(
      (0): Tanh()
    )
    """

    original: Tensor

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList: no modules; want one or more")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with grad_mode(False):
            new: Any = original
            for module in reversed([*self]):
                if hasattr(module, "right_inverse"):
                    with suppress(NotImplementedError):  # it may be declared without a rule, as in PyTorch
                        new = module.right_inverse(new)
        if not isinstance(new, Tensor | Sequence):
            raise ValueError(f"right_inverse: wants to return a tensor or several, got {type(new).__name__}")
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if isinstance(new, Tensor) else len(new)
        if isinstance(new, Tensor):
            _fits("right_inverse", new, original.dtype)
            _put(original, new)
            _register(self, "original", original)
        else:
            for number, tensor in enumerate(new):
                _register(self, f"original{number}", _learned_as(original, tensor, number))
        if not unsafe:
            _fits("the parametrization", self(), dtype, shape)

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals so that the computed tensor is `value`. Raises RuntimeError without an inverse."""
        given: Any = value
        with grad_mode(False):
            for module in reversed([*self]):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"{type(module).__name__} has no right_inverse, which assigning to the tensor wants")
                given = module.right_inverse(given)
            if self.is_tensor:
                _fits("right_inverse", given, self.original.dtype)
                _put(self.original, given)
                return
            if not isinstance(given, Sequence) or len(given) != self.ntensors:
                raise ValueError(f"right_inverse: wants to return {self.ntensors} tensors, got {type(given).__name__}")
            for number, tensor in enumerate(given):
                original = getattr(self, f"original{number}")
                _fits(f"right_inverse: tensor {number}", tensor, original.dtype)
                _put(original, tensor)

    def forward(self) -> Tensor:
        """The tensor."""
        first, *others = self
        originals = [self.original] if self.is_tensor else [getattr(self, f"original{k}") for k in range(self.ntensors)]
        value: Tensor = first(*originals)
        for module in others:
            value = module(value)
        return value


# ---- checks and storage ----
def _fits(what: str, value: object, dtype: object, shape: Sequence[int] | None = None) -> None:
    if not isinstance(value, Tensor):
        raise ValueError(f"{what}: wants to return a tensor, got {type(value).__name__}")
    if value.dtype is not dtype:
        raise ValueError(f"{what}: returned {value.dtype}, want the tensor's {dtype}, or unsafe=True")
    if shape is not None and value.shape != shape:
        raise ValueError(f"{what}: returned shape {value.shape}, want the tensor's {tuple(shape)}, or unsafe=True")


def _put(original: Tensor, value: Tensor) -> None:
    """Set the elements of `original`, which stays the same object, to those of `value`."""
    if value is original:
        return
    with grad_mode(False):
        if value.shape == original.shape and value.dtype is original.dtype:
            write(original, value.clone())
        else:
            move_storage(original, detach(value).clone())


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _learned_as(original: Tensor, tensor: object, number: int) -> Tensor:
    """One of several originals: a parameter, or a tensor that requires a gradient, where the one before it was."""
    if not isinstance(tensor, Tensor):
        raise ValueError(f"right_inverse: wants to return tensors, got {type(tensor).__name__} as tensor {number}")
    own = detach(tensor)
    own = own if tensor is original else own.clone()  # a weight's direction keeps its memory, as the weight of other layers
    if isinstance(original, Parameter):
        return Parameter(own, original.requires_grad)
    return own.requires_grad_() if original.requires_grad else own


# ---- the class of a parametrized module ----
class _Parametrized:
    """The mixin of parametrized modules' classes."""

    def __reduce_ex__(self, protocol: Any) -> Arguments:
        names = [name for name, value in vars(type(self)).items() if isinstance(value, property)]
        return _rebuilt, (type(self).__bases__[0], names), vars(self)


def _rebuilt(kind: type[Module], names: list[str]) -> Module:
    """A module without attributes, of a new class below `kind` that computes the tensors of these names."""
    module = kind.__new__(kind)
    _give_class(module)
    for name in names:
        setattr(type(module), name, _computed(name))
    return module


def _give_class(module: Module) -> None:
    kind = type(module)
    attributes = {"__module__": kind.__module__, "__reduce_ex__": _Parametrized.__reduce_ex__}
    module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), attributes)


def _computed(name: str) -> property:
    def get(self: Module) -> Tensor:
        parametrization: ParametrizationList = self.parametrizations[name]  # type: ignore[attr-defined]
        if not _Cache.depth:
            return parametrization()
        refuse("a parametrized tensor is cached")
        key = id(self), name
        if key not in _Cache.values:
            _Cache.values[key] = parametrization()
        return _Cache.values[key]

    def put(self: Module, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)  # type: ignore[attr-defined]

    return property(get, put)


# ---- for users ----
def register_parametrization(module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> Module:
    """Make `module.tensor_name` the result of `parametrization` for its previous value; returns the module.

    Args:
        module: whose parameter or buffer is meant.
        tensor_name: the attribute. Further parametrizations are applied to the result of earlier ones.
        parametrization: a module of one tensor. Its `right_inverse`, if it has one, says what to compute a given tensor
            from: one tensor or, of the first parametrization, several; it is also how the tensor is assigned to.
        unsafe: the parametrization may change dtype and shape, and is not tried.

    Raises ValueError where there is no such tensor, and for another dtype or shape unless `unsafe`.

    >>> class Symmetric(genesis.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).T
    >>> layer = register_parametrization(genesis.nn.Linear(3, 3), "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.T).all()), list(layer.state_dict())
    (True, ['bias', 'parametrizations.weight.original'])
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _try(module, tensor_name, parametrization)
        known: ParametrizationList = module.parametrizations[tensor_name]  # type: ignore[attr-defined]
        known.append(parametrization)
        known.unsafe = known.unsafe or unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _give_class(module)
            module.parametrizations = ModuleDict()  # type: ignore[attr-defined]
        setattr(type(module), tensor_name, _computed(tensor_name))
        module.parametrizations.add_module(tensor_name, made)  # type: ignore[attr-defined]
    else:
        raise ValueError(f"{type(module).__name__} has no parameter, buffer or parametrized tensor {tensor_name!r}")
    return module


def _try(module: Module, name: str, parametrization: Module) -> None:
    """Raise ValueError where a further parametrization does not keep dtype and shape."""
    before: Tensor = getattr(module, name)
    after = parametrization(before)
    _fits("the parametrization", after, before.dtype, before.shape)
    if hasattr(parametrization, "right_inverse"):
        try:
            back = parametrization.right_inverse(after)
        except NotImplementedError:  # declared, without a rule
            return
        _fits("right_inverse", back, before.dtype, before.shape)


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether the module computes the tensor of that name, or any.

    >>> is_parametrized(genesis.nn.Linear(2, 2))
    False
    """
    known = vars(module).get("parametrizations")
    if not isinstance(known, ModuleDict):
        return False
    return len(known) > 0 if tensor_name is None else tensor_name in known


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make `module.tensor_name` a parameter or buffer again: with its computed value or, with `leave_parametrized` False, the
    original. Returns the module.

    Raises ValueError if it is not parametrized, and for `leave_parametrized` False where there are several originals.

    >>> layer = register_parametrization(genesis.nn.Linear(2, 2), "weight", genesis.nn.Tanh())
    >>> remove_parametrizations(layer, "weight")
    Linear(in_features=2, out_features=2, bias=True)
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"{type(module).__name__} has no parametrization of {tensor_name!r}")
    known: ParametrizationList = module.parametrizations[tensor_name]  # type: ignore[attr-defined]
    if not known.is_tensor and not leave_parametrized:
        raise ValueError(f"{tensor_name!r} is computed from {known.ntensors} tensors: want leave_parametrized=True")
    if known.is_tensor:
        original = known.original
        if leave_parametrized:
            with grad_mode(False):
                _put(original, getattr(module, tensor_name))
    else:
        value: Tensor = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]  # type: ignore[attr-defined]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations  # type: ignore[attr-defined]
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of a module, as it was before it was parametrized.

    >>> layer = register_parametrization(genesis.nn.Linear(2, 2), "weight", genesis.nn.Tanh())
    >>> type(layer).__name__, type_before_parametrizations(layer).__name__
    ('ParametrizedLinear', 'Linear')
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Module, to_module: Module, tensor_name: str | None = None) -> Module:
    """Parametrize a tensor of `to_module`, or all, as in `from_module`, with the same originals.

    A tensor that `to_module` lacks is made. Returns `to_module`.

    >>> layer = register_parametrization(genesis.nn.Linear(2, 2), "weight", genesis.nn.Tanh())
    >>> other = transfer_parametrizations_and_params(layer, genesis.nn.Linear(2, 2))
    >>> other.parametrizations.weight.original is layer.parametrizations.weight.original
    True
    """
    if is_parametrized(from_module):
        known: ModuleDict = from_module.parametrizations  # type: ignore[attr-defined]
        for name in [*known] if tensor_name is None else [tensor_name]:
            if not hasattr(to_module, name):
                setattr(to_module, name, Parameter(getattr(from_module, name)))
            source: Any = known[name]
            for parametrization in source:
                register_parametrization(to_module, name, parametrization)
            made = to_module.parametrizations[name]  # type: ignore[attr-defined]
            for key in ["original"] if source.is_tensor else [f"original{k}" for k in range(source.ntensors)]:
                setattr(made, key, getattr(source, key))
    return to_module


NOT_REPLAYABLE = (
    "cached", "register_parametrization", "remove_parametrizations", "transfer_parametrizations_and_params", "right_inverse",
    "__init__",
)
