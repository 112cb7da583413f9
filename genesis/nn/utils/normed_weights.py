"""Weights computed by a hook before each call: PyTorch's older weight norm and spectral norm."""

from __future__ import annotations

from typing import Any

from genesis.nn.module import Module
from genesis.nn.parameter import Parameter, is_lazy
from genesis.nn.utils.parametrizations import (
    as_matrix, norm_except_dim, output_axis, power_method, singular_value, unit_vectors,
)
from genesis.tensor.handle import Tensor
from genesis.tensor.views import detach

__all__ = ["SpectralNorm", "WeightNorm", "remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]


class _Normed:
    """A forward pre-hook that computes the attribute `name` from the module's tensors named `name` + `endings`."""

    name: str
    endings: tuple[str, ...]

    def evaluate(self, module: Module) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no evaluate(module), which computes the weight")

    def compute(self, module: Module) -> Tensor: return self.evaluate(module)
    def __call__(self, module: Module, inputs: Any) -> None: setattr(module, self.name, self.compute(module))

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        weight = self.evaluate(module)
        for ending in ("", *self.endings):
            delattr(module, self.name + ending)
        module.register_parameter(self.name, Parameter(detach(weight)))

    @classmethod
    def _hook_id(cls, module: Module, name: str) -> int | None:
        """The id of the hook of this kind for the attribute; None if there is none."""
        hooks = module._forward_pre_hooks
        return next((key for key, hook in hooks.items() if isinstance(hook, cls) and hook.name == name), None)

    @classmethod
    def weight_of(cls, module: Module, name: str) -> Parameter:
        """The parameter to compute. Raises if there is none, or if it is already computed."""
        if cls._hook_id(module, name) is not None:
            raise RuntimeError(f"{cls.__name__}: {name!r} of {type(module).__name__} has it already")
        weight = module._parameters.get(name)
        if weight is None or is_lazy(weight):
            raise ValueError(f"{cls.__name__}: {type(module).__name__} has no parameter {name!r} with elements")
        return weight  # type: ignore[no-any-return]

    @classmethod
    def remove_from(cls, module: Module, name: str) -> Module:
        """Remove the hook of this kind. Returns the module; raises ValueError if there is none."""
        key = cls._hook_id(module, name)
        if key is None:
            raise ValueError(f"{cls.__name__}: {name!r} of {type(module).__name__} does not have it")
        hook: Any = module._forward_pre_hooks.pop(key)
        hook.remove(module)
        return module


class WeightNorm(_Normed):
    """The hook of `weight_norm`.

    >>> layer = weight_norm(genesis.nn.Linear(3, 2))
    >>> WeightNorm("weight", 0).compute_weight(layer).shape
    (2, 3)
    """

    endings = "_g", "_v"

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def evaluate(self, module: Module) -> Tensor:
        """g * v / |v|."""
        v: Tensor = getattr(module, f"{self.name}_v")
        result: Tensor = v * (getattr(module, f"{self.name}_g") / norm_except_dim(v, dim=self.dim))
        return result

    compute_weight = evaluate


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Learn the length and the direction of a weight apart, computed before each call: PyTorch's older
    `parametrizations.weight_norm`, with parameters `name_g` and `name_v`. Returns the module.

    Raises ValueError without such a parameter, RuntimeError for one that has it.

    >>> layer = weight_norm(genesis.nn.Linear(3, 2))
    >>> [(name, p.shape) for name, p in layer.named_parameters()]
    [('bias', (2,)), ('weight_g', (2, 1)), ('weight_v', (2, 3))]
    """
    weight, hook = WeightNorm.weight_of(module, name), WeightNorm(name, dim)
    delattr(module, name)
    module.register_parameter(f"{name}_g", Parameter(norm_except_dim(detach(weight), dim=hook.dim)))
    module.register_parameter(f"{name}_v", Parameter(detach(weight)))
    setattr(module, name, hook.compute(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Undo `weight_norm`: the weight, as it is, is a parameter. Returns the module; raises ValueError without it.

    >>> remove_weight_norm(weight_norm(genesis.nn.Linear(3, 2))).weight.shape
    (2, 3)
    """
    return WeightNorm.remove_from(module, name)


class SpectralNorm(_Normed):
    """The hook of `spectral_norm`.

    >>> SpectralNorm("weight", n_power_iterations=2).n_power_iterations
    2
    """

    endings = "_orig", "_u", "_v"

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(f"spectral_norm: n_power_iterations is {n_power_iterations}; want 1 or more")
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """The weight as a matrix whose rows are the indices of its axis."""
        return as_matrix(weight, self.dim)

    def evaluate(self, module: Module) -> Tensor:
        """The weight divided by its largest singular value."""
        return self.compute_weight(module, False)

    def compute(self, module: Module) -> Tensor:
        """The weight divided by its largest singular value; in training mode after further steps of the power method."""
        return self.compute_weight(module, module.training)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """The weight divided by its largest singular value."""
        weight, u, v = (getattr(module, self.name + end) for end in self.endings)
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            power_method(detach(matrix).T, v, u, self.n_power_iterations, self.eps)
        result: Tensor = weight / singular_value(matrix, u, v)
        return result


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value before each call: PyTorch's older `parametrizations.spectral_norm`, with
    a parameter `name_orig` and buffers `name_u` and `name_v`. Returns the module.

    Raises ValueError without such a parameter and for fewer than one step, RuntimeError for one that has it.

    >>> layer = spectral_norm(genesis.nn.Linear(3, 2))
    >>> list(layer.state_dict())
    ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    hook = SpectralNorm(name, n_power_iterations, output_axis(module) if dim is None else dim, eps)
    weight = SpectralNorm.weight_of(module, name)
    u, v = unit_vectors(as_matrix(weight, hook.dim), eps)
    delattr(module, name)
    module.register_parameter(f"{name}_orig", weight)
    setattr(module, name, detach(weight))
    module.register_buffer(f"{name}_u", u)
    module.register_buffer(f"{name}_v", v)
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Undo `spectral_norm`: the weight, as it is, is a parameter. Returns the module; raises ValueError without it.

    >>> remove_spectral_norm(spectral_norm(genesis.nn.Linear(3, 2))).weight.shape
    (2, 3)
    """
    return SpectralNorm.remove_from(module, name)


NOT_REPLAYABLE = ("weight_norm", "remove_weight_norm", "spectral_norm", "remove_spectral_norm")
