"""Pruning methods, as hooks before a module's calls; `genesis.nn.utils.prune` has the functions for users.

The parameter `name` becomes `name_orig` with a buffer `name_mask`, and `name` their product. Pruning again keeps
the mask: later methods choose among the remaining elements.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from genesis.functions.creation import ones_like, zeros, zeros_like
from genesis.nn.module import Module
from genesis.ops.registry import OPERATIONS
from genesis.random import rand, rand_like
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import write
from genesis.tensor.views import detach
from genesis.tracing.state import grad_mode


class BasePruningMethod(ABC):
    """The base of ways to prune. A subclass has a `PRUNING_TYPE` ("unstructured", "structured" along its `dim`, or "global")
    and a `compute_mask(t, default_mask)`, which returns the mask.

    >>> class EveryOther(BasePruningMethod):
    ...     PRUNING_TYPE = "unstructured"
    ...     def compute_mask(self, t, default_mask):
    ...         mask = default_mask.clone()
    ...         mask.view(-1)[::2] = 0
    ...         return mask
    >>> layer = genesis.nn.Linear(4, 1)
    >>> method = EveryOther.apply(layer, "weight")
    >>> layer.weight_mask.tolist()
    [[0.0, 1.0, 0.0, 1.0]]
    """

    PRUNING_TYPE: ClassVar[str]
    _tensor_name: str = ""

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask for importances `t`, of their shape: 1 for what stays; 0 where `default_mask` is."""

    def apply_mask(self, module: Module) -> Tensor:
        """The original times the mask."""
        original: Tensor = getattr(module, f"{self._tensor_name}_orig")
        return getattr(module, f"{self._tensor_name}_mask").to(original.dtype) * original  # type: ignore[no-any-return]

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune the parameter `name` of `module`; returns the hook, which is called before the module's calls.

        `args` and `kwargs` are the method's settings. `importance_scores`, of the parameter's shape, replace its values.
        """
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        before = hook_of(module, name)
        tensor: Tensor = getattr(module, name)
        _same_shape(importance_scores, tensor)
        scores = detach(tensor) if importance_scores is None else importance_scores
        with grad_mode(False):
            if before is None:
                mask = method.compute_mask(scores, default_mask=ones_like(detach(tensor)))
            else:
                key, old = before
                container = old if isinstance(old, PruningContainer) else PruningContainer(old)
                container.add_pruning_method(method)
                method = container
                mask = container.compute_mask(scores, default_mask=detach(getattr(module, f"{name}_mask")).clone())
        if before is None:
            delattr(module, name)
            module.register_parameter(f"{name}_orig", tensor)  # type: ignore[arg-type]
        else:
            del module._forward_pre_hooks[key]
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """`t`, with zeros where this method prunes it; a mask that is there already, and scores to use instead of its values,
        may be given.

        >>> L1Unstructured(2).prune(genesis.tensor([3.0, -1.0, 2.0]))
        tensor([3., -0., 0.])
        """
        _same_shape(importance_scores, t)
        scores = t if importance_scores is None else importance_scores
        return t * self.compute_mask(scores, default_mask=ones_like(t) if default_mask is None else default_mask)

    def remove(self, module: Module) -> None:
        """Make the masked tensor the parameter."""
        name = self._tensor_name
        with grad_mode(False):
            weight = self.apply_mask(module)
            original = getattr(module, f"{name}_orig")
            write(original, weight)
        for end in ("", "_orig", "_mask"):
            delattr(module, name + end)
        module.register_parameter(name, original)


def hook_of(module: Module, name: str) -> tuple[int, BasePruningMethod] | None:
    """The hook that prunes a parameter, with the id of its handle."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return key, hook
    return None


def _same_shape(scores: Tensor | None, tensor: Tensor) -> None:
    if scores is not None and scores.shape != tensor.shape:
        raise AssertionError(f"prune: importance_scores have shape {scores.shape}; want the tensor's {tensor.shape}")


class PruningContainer(BasePruningMethod):
    """Methods that prune the same parameter one after the other.

    >>> layer = genesis.nn.utils.prune.l1_unstructured(genesis.nn.Linear(4, 2), "weight", 2)
    >>> layer = genesis.nn.utils.prune.random_unstructured(layer, "weight", 2)
    >>> layer.weight_mask.sum()
    tensor(4.)
    """

    PRUNING_TYPE = "container"

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Let `method` prune the remaining elements. Raises TypeError for anything else, ValueError for one of another
        parameter."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"PruningContainer: wants a BasePruningMethod, got {type(method).__name__}")
        if method._tensor_name != self._tensor_name:
            raise ValueError(f"PruningContainer: prunes {self._tensor_name!r}, the method {method._tensor_name!r}")
        self._pruning_methods += (method,)

    def __len__(self) -> int: return len(self._pruning_methods)
    def __iter__(self) -> Iterator[BasePruningMethod]: return iter(self._pruning_methods)
    def __getitem__(self, index: int) -> BasePruningMethod: return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of the last method, applied to what `default_mask` leaves."""
        method, mask = self._pruning_methods[-1], default_mask.to(t.dtype, copy=True)
        if method.PRUNING_TYPE == "unstructured":
            chosen: Any = default_mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError(f"prune: {type(method).__name__} is structured and has no dim")
            axis = _axis(t, method.dim)
            kept = default_mask.sum([a for a in range(t.ndim) if a != axis]) != 0
            chosen = (*[slice(None)] * axis, kept)
        elif method.PRUNING_TYPE == "global":
            chosen = (slice(None),) * t.ndim
        else:
            raise ValueError(f"prune: PRUNING_TYPE is {method.PRUNING_TYPE!r}; want 'unstructured', 'structured' or 'global'")
        mask[chosen] = method.compute_mask(t[chosen], default_mask=default_mask[chosen]).to(mask.dtype)
        return mask


# ---- methods ----
class Identity(BasePruningMethod):
    """Prunes nothing: it brings a mask of ones.

    >>> Identity().prune(genesis.ones(2))
    tensor([1., 1.])
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class _Amount(BasePruningMethod):
    """The base of methods that prune a number or fraction of elements."""

    def __init__(self, amount: int | float) -> None:
        if not isinstance(amount, int | float):
            raise TypeError(f"prune: amount is {amount!r}; want how many to prune, or which share")
        if amount < 0 or (isinstance(amount, float) and amount > 1):
            raise ValueError(f"prune: amount is {amount}; want a share between 0 and 1, or a number that is not negative")
        self.amount = amount

    def _count(self, size: int) -> int:
        """The number of elements of `size` to prune."""
        count = self.amount if isinstance(self.amount, int) else round(self.amount * size)
        if count > size:
            raise ValueError(f"prune: amount is {count}, of {size} alone")
        return count


class _Unstructured(_Amount):
    """Methods that prune single elements, the least of their scores."""

    PRUNING_TYPE = "unstructured"

    def _scores(self, t: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no _scores(t), by which elements are chosen")

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = self._count(t.numel())
        if not count:
            return default_mask.clone()
        _, least = call(OPERATIONS["topk"], (self._scores(t).reshape(-1), count, -1, False))
        return default_mask.reshape(-1).index_fill(0, least, 0).reshape(default_mask.shape)


class RandomUnstructured(_Unstructured):
    """Prunes elements at random.

    Args:
        amount: how many, or which share. Raises TypeError for no number, ValueError for one that is out of range.

    >>> RandomUnstructured(0.5).prune(genesis.ones(4)).sum()
    tensor(2.)
    """

    def _scores(self, t: Tensor) -> Tensor:
        return -rand_like(t)  # PyTorch prunes where the numbers are largest


class L1Unstructured(_Unstructured):
    """Prunes the elements of the least magnitude. `amount` as for `RandomUnstructured`.

    >>> L1Unstructured(0.5).prune(genesis.tensor([3.0, 1.0, 2.0, -4.0])).tolist()
    [3.0, 0.0, 0.0, -4.0]
    """

    def _scores(self, t: Tensor) -> Tensor:
        return t.abs()


class _Structured(_Amount):
    """Methods that prune whole parts along an axis, the least of their scores."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: int | float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def _scores(self, t: Tensor, axis: int) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no _scores(t, axis), by which parts are chosen")

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if t.ndim < 2:
            raise ValueError(f"prune: a tensor of shape {t.shape} has no parts; want two axes or more")
        axis = _axis(t, self.dim)
        size = t.shape[axis]
        count = self._count(size)
        if not count:
            return default_mask
        _, kept = call(OPERATIONS["topk"], (self._scores(t, axis), size - count, -1, True))
        part = zeros(size, dtype=t.dtype, device=t.device).index_fill(0, kept, 1)
        mask = zeros_like(t) + part.reshape(*[1] * axis, size, *[1] * (t.ndim - axis - 1))
        return mask * default_mask.to(mask.dtype)


class RandomStructured(_Structured):
    """Prunes parts along an axis at random.

    Args:
        amount: how many, or which share.
        dim: the axis.

    >>> RandomStructured(1, dim=0).prune(genesis.ones(3, 2)).sum()
    tensor(4.)
    """

    def _scores(self, t: Tensor, axis: int) -> Tensor:
        return rand(t.shape[axis], device=t.device)


class LnStructured(_Structured):
    """Prunes the parts along an axis whose norms are the least.

    Args:
        amount: how many, or which share.
        n: the order of the norm.
        dim: the axis.

    >>> LnStructured(1, n=2, dim=0).prune(genesis.tensor([[3.0, 0.0], [1.0, 1.0]])).tolist()
    [[3.0, 0.0], [0.0, 0.0]]
    """

    def __init__(self, amount: int | float, n: int | float | str, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _scores(self, t: Tensor, axis: int) -> Tensor:
        return call(OPERATIONS["norm"], (t, self.n, tuple([a for a in range(t.ndim) if a != axis])))


class CustomFromMask(BasePruningMethod):
    """Prunes where a mask is 0.

    >>> CustomFromMask(genesis.tensor([1.0, 0.0])).prune(genesis.ones(2))
    tensor([1., 0.])
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(f"prune: the mask has shape {self.mask.shape}; want {default_mask.shape}")
        return default_mask * self.mask.to(default_mask.dtype)


def _axis(t: Tensor, dim: int) -> int:
    if not -t.ndim <= dim < t.ndim:
        raise IndexError(f"prune: dim is {dim} of a tensor with shape {t.shape}")
    return dim % t.ndim


NOT_REPLAYABLE = ("apply", "remove")
