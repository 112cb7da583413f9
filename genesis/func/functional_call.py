"""A module as a function of its parameters."""

from __future__ import annotations

from collections.abc import Mapping

from genesis.ir.annotations import Options, Tree
from genesis.nn.module import Module
from genesis.tensor.handle import Tensor

__all__ = ["functional_call"]


def functional_call(
    module: Module, parameters_and_buffers: Mapping[str, Tensor], args: Tree = (), kwargs: Options | None = None
) -> Tree:
    """What `module` computes with other tensors in place of the parameters and buffers at the given paths.

    Args:
        module: is as it was afterwards.
        parameters_and_buffers: path, as in `named_parameters`, -> tensor. What is not named stays; a parameter that is
            shared is replaced wherever it stands.
        args: the positional arguments of the call, a tuple, or the only one.
        kwargs: the named ones.

    Raises KeyError for a path at which the module has no tensor.

    >>> layer = genesis.nn.Linear(2, 1)
    >>> weights = {"weight": genesis.ones(1, 2), "bias": genesis.zeros(1)}
    >>> genesis.func.functional_call(layer, weights, genesis.tensor([3.0, 4.0]))
    tensor([7.])
    """
    modules = dict(module.named_modules())
    replaced: dict[int, Tensor] = {}
    for path, tensor in parameters_and_buffers.items():
        owner, _, name = path.rpartition(".")
        held = vars(modules[owner]).get(name) if owner in modules else None
        if not isinstance(held, Tensor):
            raise KeyError(f"functional_call: {type(module).__name__} has no parameter or buffer {path!r}")
        replaced[id(held)] = tensor
    before = [(m, name, held) for m in modules.values() for name, held in vars(m).items() if id(held) in replaced]
    try:
        for m, name, held in before:
            vars(m)[name] = replaced[id(held)]
        return module(*(args if isinstance(args, tuple) else (args,)), **(kwargs or {}))
    finally:
        for m, name, held in before:
            vars(m)[name] = held
