"""A module's state dict, saving and loading it, and the hooks around that.

Each module saves and loads itself by `_save_to_state_dict` and `_load_from_state_dict`, so classes that override these for
PyTorch work here too. Values are written last, once everything has been checked.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from genesis.autograd.hooks import RemovableHandle
from genesis.functions.from_data import as_tensor
from genesis.ir.annotations import AnyFunction, Attributes
from genesis.ir.library import Library
from genesis.nn.members import members_of, pairs_of
from genesis.nn.parameter import Parameter, UninitializedTensorMixin, is_lazy
from genesis.runtime.devices import META
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import write
from genesis.tensor.size import Size
from genesis.tensor.views import detach
from genesis.tracing.state import grad_mode

EXTRA = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """The missing and the unexpected keys of `load_state_dict`."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not any(self):
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class _Loading(OrderedDict[str, Any]):
    """A state dict that is being loaded, and the writes deferred until all of it has been checked."""

    def __init__(self, values: Mapping[str, Any], writes: list[Callable[[], object]]) -> None:
        super().__init__(values)
        self.writes = writes


class StateHooks:
    """A module's state dict hooks; each kind in calling order."""

    def __init__(self) -> None:
        self.before_save: dict[int, AnyFunction] = {}
        self.after_save: dict[int, AnyFunction] = {}
        self.replacing: set[int] = set()  # ids of `after_save` hooks whose result replaces the state dict
        self.before_load: dict[int, AnyFunction] = {}
        self.after_load: dict[int, AnyFunction] = {}


class Stateful:
    """The base of objects whose tensors are saved and loaded by name."""

    _version: int = 1  # of the saved format; `_load_from_state_dict` finds it in the metadata
    _state_hooks: StateHooks | None = None
    _declared_buffers: ClassVar[Mapping[str, bool]] = {}  # buffers of every module of the class -> whether they are saved
    _own_loading: ClassVar[bool] = True  # whether `_load_from_state_dict` is the library's

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "_load_from_state_dict" in vars(cls):
            cls._own_loading = cls.__module__.startswith("genesis.")

    def _children(self) -> Iterable[tuple[str, Any]]:
        """(name, module) for every name of a direct child."""
        raise NotImplementedError(f"{type(self).__name__} has no _children()")

    # ---- saving ----
    def state_dict(
        self, *args: Any, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """`prefix` + path -> parameter, persistent buffer or extra state; added to `destination`, if given.

        The tensors share the module's storage; with `keep_vars` they are its own tensors. `args` are the same settings by
        position.

        >>> list(genesis.nn.Sequential(genesis.nn.Linear(3, 2)).state_dict())
        ['0.weight', '0.bias']
        """
        if args:
            given: list[Any] = [destination, prefix, keep_vars]
            given[: len(args)] = args
            destination, prefix, keep_vars = given
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()  # type: ignore[attr-defined]
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        hooks = self._state_hooks
        for hook in [] if hooks is None else [*hooks.before_save.values()]:
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, child in self._children():
            child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for key, hook in [] if hooks is None else [*hooks.after_save.items()]:
            answer = hook(self, destination, prefix, metadata)
            if answer is not None:
                if hooks is None or key not in hooks.replacing:
                    raise RuntimeError("state_dict: a post hook changes the dictionary in place; want it to return None")
                destination = answer
        return destination

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Add this module's own state, without submodules', to `destination`."""
        for name, tensor in self._own_state():
            destination[prefix + name] = tensor if keep_vars or is_lazy(tensor) else detach(tensor)
        if type(self).get_extra_state is not Stateful.get_extra_state:
            destination[prefix + EXTRA] = self.get_extra_state()

    def _own_state(self) -> Iterator[tuple[str, Tensor]]:
        """(name, tensor) of this module's parameters and persistent buffers."""
        for table in ("_parameters", "_buffers"):
            persistent = members_of(self, table).names
            for name, value in pairs_of(self, table):
                if value is not None and persistent[name]:
                    yield name, value

    def get_extra_state(self) -> Any:
        """The module's state besides tensors, any picklable object. A class with such state overrides this and
        `set_extra_state`.

        >>> class Counter(genesis.nn.Module):
        ...     calls = 3
        ...     def get_extra_state(self):
        ...         return self.calls
        ...     def set_extra_state(self, state):
        ...         self.calls = state
        >>> dict(Counter().state_dict())
        {'_extra_state': 3}
        """
        raise RuntimeError(f"{type(self).__name__} has no extra state; want get_extra_state and set_extra_state in the class")

    def set_extra_state(self, state: Any) -> None:
        """Restore the result of `get_extra_state` from a loaded state dict."""
        raise RuntimeError(f"{type(self).__name__} has no extra state; want get_extra_state and set_extra_state in the class")

    # ---- loading ----
    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> IncompatibleKeys:
        """Copy values (tensors or arrays) into the parameters and buffers of the same paths.

        With `assign`, the tensors replace the parameters and buffers and take over their `requires_grad`.
        Raises TypeError unless `state_dict` is a mapping, and RuntimeError, having copied nothing, for a different shape and,
        if `strict`, for a missing or unexpected path.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        keys, faults = IncompatibleKeys([], []), list[str]()
        metadata = getattr(state_dict, "_metadata", None) or {}
        writes: list[Callable[[], object]] = []
        _load(self, _Loading(state_dict, writes), "", metadata, assign, keys, faults)
        if strict and keys.unexpected_keys:
            faults.insert(0, f"Unexpected key(s) in state_dict: {_quoted(keys.unexpected_keys)}. ")
        if strict and keys.missing_keys:
            faults.insert(0, f"Missing key(s) in state_dict: {_quoted(keys.missing_keys)}. ")
        if faults:
            raise RuntimeError("\n\t".join([f"Error(s) in loading state_dict for {type(self).__name__}:", *faults]))
        _write_all(writes)
        return keys

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: Attributes, strict: bool, missing_keys: list[str],
        unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:
        """Load this module's own state, without submodules', and add errors to the lists."""
        hooks, given = self._state_hooks, (local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        for hook in [] if hooks is None else [*hooks.before_load.values()]:
            hook(self, state_dict, prefix, *given)
        own = dict(self._own_state())
        writes = state_dict.writes if isinstance(state_dict, _Loading) and self._own_loading else []
        for name, tensor in own.items():
            if (key := prefix + name) in state_dict:
                _load_tensor(self, name, tensor, state_dict[key], key, local_metadata, error_msgs, writes)
            elif strict:
                missing_keys.append(key)
        extra = prefix + EXTRA
        if type(self).set_extra_state is not Stateful.set_extra_state:
            if extra in state_dict:
                writes.append(lambda: self.set_extra_state(state_dict[extra]))
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            children = {name for name, _ in self._children()}
            for key in state_dict:
                name, _, below = key.removeprefix(prefix).partition(".")
                if key.startswith(prefix) and key != extra and name not in (children if below else own):
                    unexpected_keys.append(key)
        if not (isinstance(state_dict, _Loading) and writes is state_dict.writes):
            _write_all(writes)

    # ---- hooks ----
    def register_state_dict_pre_hook(self, hook: AnyFunction) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before each `state_dict` of the module or of one above it."""
        return RemovableHandle(self._own_state_hooks().before_save, hook)

    def register_state_dict_post_hook(self, hook: AnyFunction) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after the module's state is in the dictionary, to change it.

        `state_dict` raises RuntimeError for a hook that returns anything.

        >>> layer = genesis.nn.Linear(2, 1)
        >>> handle = layer.register_state_dict_post_hook(lambda module, state, prefix, meta: state.update(unit="m"))
        >>> list(layer.state_dict())
        ['weight', 'bias', 'unit']
        """
        return RemovableHandle(self._own_state_hooks().after_save, hook)

    def _register_state_dict_hook(self, hook: AnyFunction) -> RemovableHandle:
        handle = self.register_state_dict_post_hook(hook)
        self._own_state_hooks().replacing.add(handle.id)
        return handle

    def register_load_state_dict_pre_hook(self, hook: AnyFunction) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)` before the
        module's own state is loaded: it may change the dictionary, which is a copy, and the lists.

        >>> layer = genesis.nn.Linear(1, 1, bias=False)
        >>> def rename(module, state, prefix, *others):
        ...     state[prefix + "weight"] = state.pop(prefix + "kernel")
        >>> handle = layer.register_load_state_dict_pre_hook(rename)
        >>> layer.load_state_dict({"kernel": genesis.ones(1, 1)})
        <All keys matched successfully>
        """
        return RemovableHandle(self._own_state_hooks().before_load, hook)

    def _register_load_state_dict_pre_hook(self, hook: AnyFunction, with_module: bool = False) -> RemovableHandle:
        return self.register_load_state_dict_pre_hook(hook if with_module else lambda module, *args: hook(*args))

    def register_load_state_dict_post_hook(self, hook: AnyFunction) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` once the module and its submodules are loaded. It may change both lists and
        must return None.
        """
        return RemovableHandle(self._own_state_hooks().after_load, hook)

    def _own_state_hooks(self) -> StateHooks:
        if self._state_hooks is None:
            self._state_hooks = StateHooks()
        return self._state_hooks


def _load(
    module: Stateful, state: _Loading, prefix: str, metadata: Mapping[str, Attributes], assign: bool, keys: IncompatibleKeys,
    faults: list[str],
) -> None:
    """Load a state dict into a module and its submodules."""
    local = {**metadata.get(prefix[:-1], {}), **({"assign_to_params_buffers": True} if assign else {})}
    module._load_from_state_dict(state, prefix, local, True, *keys, faults)
    for name, child in module._children():
        below = f"{prefix}{name}."
        part = _Loading({key: value for key, value in state.items() if key.startswith(below)}, state.writes)
        _load(child, part, below, metadata, assign, keys, faults)
    for hook in [] if module._state_hooks is None else [*module._state_hooks.after_load.values()]:
        _write_all(state.writes)  # the hook sees the loaded values
        if hook(module, keys) is not None:
            raise RuntimeError("load_state_dict: a post hook changes the lists of keys in place; want it to return None")


def _quoted(keys: Iterable[str]) -> str:
    """The keys as PyTorch's errors list them."""
    return ", ".join([f'"{key}"' for key in keys])


def _load_tensor(
    module: Stateful, name: str, tensor: Tensor, given: Any, key: str, metadata: Attributes, faults: list[str],
    writes: list[Callable[[], object]],
) -> None:
    """Note that `given` is to be written into `tensor`, the module's attribute `name`, or what is wrong with it."""
    if is_lazy(given) and is_lazy(tensor):
        return
    if isinstance(tensor, UninitializedTensorMixin):
        tensor.materialize(given.shape)
    elif is_lazy(given):
        raise RuntimeError(f"load_state_dict: can't access the shape of {key}, which has none yet: call the module")
    try:
        plain = isinstance(given, int | float | complex | str) and not isinstance(given, np.generic)
        value = None if plain else as_tensor(given)
    except (TypeError, ValueError):
        value = None
    if value is None:
        want = f"expected {Library.name}.Tensor or Tensor-like object from checkpoint but received {type(given)}"
        faults.append(f'While copying the parameter named "{key}", {want}')
        return
    if not tensor.shape and value.shape == (1,):
        value = value[0]
    if value.shape != tensor.shape:
        faults.append(f"size mismatch for {key}: copying a param with shape {Size(value.shape)} from checkpoint, "
                      f"the shape in current model is {Size(tensor.shape)}.")
    elif not metadata.get("assign_to_params_buffers"):
        if tensor.device is META and value.device is not META:
            warnings.warn(f"load_state_dict: {key} is on 'meta' and takes no values; want assign=True, or to_empty() before",
                          stacklevel=5)
        writes.append(lambda: write(tensor, value.to(tensor, copy=True)))
    elif isinstance(tensor, Parameter):
        kept = value if isinstance(value, Parameter) else Parameter(value, tensor.requires_grad)
        kept.requires_grad = tensor.requires_grad
        writes.append(lambda: setattr(module, name, kept))
    else:
        writes.append(lambda: setattr(module, name, value))


def _write_all(writes: list[Callable[[], object]]) -> None:
    with grad_mode(False):
        for each in writes:
            each()
    writes.clear()


NOT_REPLAYABLE = (
    "state_dict", "load_state_dict", "register_state_dict_pre_hook", "register_state_dict_post_hook",
    "_register_state_dict_hook", "register_load_state_dict_pre_hook", "_register_load_state_dict_pre_hook",
    "register_load_state_dict_post_hook",
)
