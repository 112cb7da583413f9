"""Wrapping policies: which submodules get their own wrapper: PyTorch's `torch.distributed.fsdp.wrap`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from genesis.nn.attention import MultiheadAttention
from genesis.nn.containers import ModuleDict, ModuleList
from genesis.nn.module import Module
from genesis.tensor.handle import Tensor

__all__ = [
    "CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap", "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy", "transformer_auto_wrap_policy", "wrap", "wrap_children",
]

Wrapper = Callable[..., Module]


def always_wrap_policy(*args: Any, **options: Any) -> bool:
    """Wrap every module."""
    return True


class ModuleWrapPolicy:
    """Wrap the modules of some classes.

    >>> from genesis import nn
    >>> ModuleWrapPolicy({nn.Linear})(nn.Linear(2, 2), recurse=False)
    True
    """

    def __init__(self, module_classes: Iterable[type[Module]]) -> None:
        self._module_classes = tuple(module_classes)

    def __call__(self, module: Module, recurse: bool, *args: Any, **options: Any) -> bool:
        return recurse or isinstance(module, self._module_classes)


class CustomPolicy:
    """Wrap the modules for which a function returns True, or the settings of their wrapper as a dictionary.

    Raises ValueError for any other result than these and False.
    """

    def __init__(self, lambda_fn: Callable[[Module], bool | dict[str, Any]]) -> None:
        self._lambda_fn = lambda_fn

    def settings_of(self, module: Module) -> dict[str, Any] | None:
        """The settings of the module's wrapper; None if it is not wrapped."""
        answer = self._lambda_fn(module)
        if not isinstance(answer, bool | dict):
            raise ValueError(f"CustomPolicy: the function returned {answer!r:.60}; want True, False or settings")
        return answer if isinstance(answer, dict) and answer else {} if answer is True else None


def lambda_auto_wrap_policy(module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Module], bool]) -> bool:
    """Wrap the modules for which `lambda_fn` holds; `functools.partial` gives it."""
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: Collection[type[Module]]
) -> bool:
    """Wrap the modules of these classes."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


class _SizeBased:
    """Wrap modules with at least `min_num_params` elements that are not already wrapped within."""

    FORCE_LEAF_MODULES: ClassVar[set[type[Module]]] = {MultiheadAttention}  # never wrap inside these
    EXCLUDE_WRAP_MODULES: ClassVar[set[type[Module]]] = {ModuleList, ModuleDict}

    def __call__(
        self, module: Module, recurse: bool, nonwrapped_numel: int, min_num_params: int = 100_000_000,
        force_leaf_modules: Collection[type[Module]] | None = None,
        exclude_wrap_modules: Collection[type[Module]] | None = None,
    ) -> bool:
        leaves = self.FORCE_LEAF_MODULES if force_leaf_modules is None else force_leaf_modules
        excluded = self.EXCLUDE_WRAP_MODULES if exclude_wrap_modules is None else exclude_wrap_modules
        return nonwrapped_numel >= min_num_params and not isinstance(module, tuple(leaves if recurse else excluded))


size_based_auto_wrap_policy = _SizeBased()


def _or_policy(module: Module, recurse: bool, nonwrapped_numel: int, policies: Sequence[Callable[..., bool]]) -> bool:
    return any(policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for policy in policies)


def wrap_children(
    module: Module, policy: Any, wrapper: Wrapper, ignored_modules: Collection[Module] = (),
    ignored_params: Collection[Tensor] = (),
) -> None:
    """Wrap the submodules of `module` that a policy selects, the innermost first."""
    ignored = {id(each) for ignored_module in ignored_modules for each in ignored_module.modules()}
    kept = {id(p) for p in ignored_params}
    if isinstance(policy, CustomPolicy):
        _wrap_chosen(module, policy.settings_of, wrapper, ignored, {})
    else:
        _wrap_below(module, policy, wrapper, ignored, kept, 0)


def _wrap_chosen(
    module: Module, settings_of: Callable[[Module], dict[str, Any] | None], wrapper: Wrapper, ignored: set[int],
    done: dict[int, Module],
) -> None:
    for name, child in [*module.named_children()]:
        if id(child) in ignored:
            continue
        if id(child) not in done:
            _wrap_chosen(child, settings_of, wrapper, ignored, done)
            settings = settings_of(child)
            done[id(child)] = child if settings is None else wrapper(child, **settings)
        if done[id(child)] is not child:
            setattr(module, name, done[id(child)])


def _wrap_below(
    module: Module, policy: Callable[..., bool], wrapper: Wrapper, ignored: set[int], kept: set[int], level: int
) -> tuple[Module, int]:
    """(the module with wrapped submodules, wrapped itself unless outermost; the number of elements in wrappers)."""
    elements = sum(p.numel() for p in module.parameters() if id(p) not in kept)
    if not policy(module=module, recurse=True, nonwrapped_numel=elements):
        return module, 0
    wrapped = 0
    for name, child in [*module.named_children()]:
        if id(child) not in ignored:
            found, count = _wrap_below(child, policy, wrapper, ignored, kept, level + 1)
            wrapped += count
            if found is not child:
                setattr(module, name, found)
    if level and policy(module=module, recurse=False, nonwrapped_numel=elements - wrapped):
        return wrapper(module), elements
    return module, wrapped


_enabled: list[tuple[Wrapper, dict[str, Any]]] = []


@contextmanager
def enable_wrap(*, wrapper_cls: Wrapper, **wrapper_kwargs: Any) -> Iterator[None]:
    """A context in which `wrap` wraps, with these settings."""
    _enabled.append((wrapper_cls, wrapper_kwargs))
    try:
        yield
    finally:
        _enabled.pop()


def wrap(module: Module, **wrap_overrides: Any) -> Module:
    """The module wrapped with the innermost `enable_wrap`'s settings; unchanged outside of one."""
    if not _enabled:
        return module
    wrapper, settings = _enabled[-1]
    return wrapper(module, **{**settings, **wrap_overrides})
