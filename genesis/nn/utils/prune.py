"""Pruning: parts of a parameter are masked by a hook before each call. The names of PyTorch's `nn.utils.prune`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from genesis.functions.creation import ones_like
from genesis.nn.module import Module
from genesis.nn.utils.parameters import parameters_to_vector
from genesis.nn.utils.pruning import (
    BasePruningMethod, CustomFromMask, Identity, L1Unstructured, LnStructured, PruningContainer, RandomStructured,
    RandomUnstructured, hook_of,
)
from genesis.tensor.handle import Tensor
from genesis.tensor.views import detach
from genesis.tracing.state import grad_mode

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer", "RandomStructured",
    "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned", "l1_unstructured",
    "ln_structured", "random_structured", "random_unstructured", "remove",
]
__dir__ = __all__.copy


def identity(module: Module, name: str) -> Module:
    """Give a parameter a mask that prunes nothing. Returns the module.

    >>> identity(genesis.nn.Linear(2, 1), "bias").bias_mask
    tensor([1.])
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: int | float) -> Module:
    """Prune elements of a parameter at random: so many, or such a share. Returns the module.

    >>> random_unstructured(genesis.nn.Linear(4, 2), "weight", 0.25).weight_mask.sum()
    tensor(6.)
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: int | float, importance_scores: Tensor | None = None) -> Module:
    """Prune the elements of a parameter of the least magnitude, or of the least `importance_scores`. Returns the module.

    >>> scores = genesis.tensor([[0.0, 1.0, 2.0]])
    >>> l1_unstructured(genesis.nn.Linear(3, 1), "weight", 2, scores).weight_mask
    tensor([[0., 0., 1.]])
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: int | float, dim: int) -> Module:
    """Prune parts of a parameter along an axis at random. Returns the module.

    >>> random_structured(genesis.nn.Linear(4, 2), "weight", 1, dim=0).weight_mask.sum()
    tensor(4.)
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: int | float, n: int | float | str, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Prune the parts of a parameter along an axis whose norms of order `n` are the least. Returns the module.

    >>> scores = genesis.tensor([[1.0, 1.0], [2.0, 2.0]])
    >>> ln_structured(genesis.nn.Linear(2, 2), "weight", 0.5, n=2, dim=0, importance_scores=scores).weight_mask
    tensor([[0., 0.],
            [1., 1.]])
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune a parameter where `mask`, of its shape, is 0. Returns the module.

    >>> custom_from_mask(genesis.nn.Linear(2, 1), "weight", genesis.tensor([[0, 1]])).weight_mask
    tensor([[0., 1.]])
    """
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]], pruning_method: type[BasePruningMethod],
    importance_scores: Mapping[tuple[Module, str], Tensor] | None = None, **kwargs: Any,
) -> None:
    """Prune several parameters, each a module and a name, as if they were one.

    Args:
        pruning_method: a class of methods that prune single elements; `kwargs` are its settings.
        importance_scores: by (module, name), of those that do not decide by themselves.

    Raises TypeError for another kind of method, or scores that are no dictionary.

    >>> first, second = genesis.nn.Linear(2, 2), genesis.nn.Linear(2, 2)
    >>> global_unstructured([(first, "weight"), (second, "weight")], L1Unstructured, amount=3)
    >>> first.weight_mask.sum() + second.weight_mask.sum()
    tensor(5.)
    """
    if not isinstance(parameters, Iterable):
        raise TypeError(f"global_unstructured: wants pairs of a module and a name, got {type(parameters).__name__}")
    if not isinstance(importance_scores, Mapping | None):
        raise TypeError(f"global_unstructured: importance_scores are a {type(importance_scores).__name__}; want a dictionary")
    pairs, given = [*parameters], importance_scores or {}
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(f"global_unstructured: {pruning_method.__name__} prunes {method.PRUNING_TYPE}; want 'unstructured'")
    container = PruningContainer()
    container.add_pruning_method(method)
    tensors = [detach(getattr(module, name)) for module, name in pairs]
    with grad_mode(False):
        scores = [given.get(pair, tensor) for pair, tensor in zip(pairs, tensors, strict=True)]
        masks = [getattr(m, f"{name}_mask", ones_like(t)) for (m, name), t in zip(pairs, tensors, strict=True)]
        whole = container.compute_mask(parameters_to_vector(scores), parameters_to_vector(masks))
    start = 0
    for (module, name), tensor in zip(pairs, tensors, strict=True):
        custom_from_mask(module, name, whole[start : start + tensor.numel()].reshape(tensor.shape))
        start += tensor.numel()


def remove(module: Module, name: str) -> Module:
    """Make the masked tensor the parameter, permanently. Returns the module; raises ValueError if it is not pruned.

    >>> list(remove(identity(genesis.nn.Linear(2, 1), "weight"), "weight").state_dict())
    ['bias', 'weight']
    """
    found = hook_of(module, name)
    if found is None:
        raise ValueError(f"prune: {name!r} of {type(module).__name__} is not pruned")
    key, hook = found
    hook.remove(module)
    del module._forward_pre_hooks[key]
    return module


def is_pruned(module: Module) -> bool:
    """Whether any parameter of the module, or of those below, is pruned.

    >>> is_pruned(genesis.nn.Sequential(identity(genesis.nn.Linear(2, 1), "weight")))
    True
    """
    hooks = [hook for below in module.modules() if below._hooks is not None for hook in below._forward_pre_hooks.values()]
    return any(isinstance(hook, BasePruningMethod) for hook in hooks)


NOT_REPLAYABLE = (
    "remove", "identity", "random_unstructured", "l1_unstructured", "random_structured", "ln_structured",
    "custom_from_mask", "global_unstructured",
)
