"""A module as a function of its parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from genesis.ir.annotations import Options, Tree
from genesis.nn.module import Module
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor


def functional_call(
    module: Module, parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]], args: Tree = None,
    kwargs: Options | None = None, *, tie_weights: bool = True, strict: bool = False,
) -> Tree:
    """Call `module` with other tensors instead of the parameters and buffers at the given paths.

    Args:
        module: unchanged afterwards.
        parameter_and_buffer_dicts: path, as in `named_parameters`, -> tensor, or several such dicts. The rest stays. A single
            dict gets the tensors that the call assigns to these paths.
        args: the positional arguments, a tuple or a single one; None for none.
        kwargs: the named arguments.
        tie_weights: replace a tensor with several paths at all of them; otherwise only at the given ones.
        strict: require all parameters and buffers, shared ones once.

    Raises KeyError for a path without a tensor, ValueError for a path in several dicts or two tensors for tied weights,
    RuntimeError for paths that `strict` requires.

    >>> layer = genesis.nn.Linear(2, 1)
    >>> weights = {"weight": genesis.ones(1, 2), "bias": genesis.zeros(1)}
    >>> genesis.func.functional_call(layer, weights, genesis.tensor([3.0, 4.0]))
    tensor([7.])
    """
    given = _joined(parameter_and_buffer_dicts)
    members = _members(module)
    if unknown := given.keys() - members.keys():
        raise KeyError(f"functional_call: {type(module).__name__} has no parameter or buffer {min(unknown)!r}")
    replaced = {id(members[path][2]): (path, tensor) for path, tensor in given.items()}
    if tie_weights:
        for path, tensor in given.items():
            first, other = replaced[id(members[path][2])]
            if other is not tensor:
                raise ValueError(f"functional_call: {first!r} and {path!r} are one tensor; want one, or tie_weights=False")
        given = {path: replaced[id(current)][1] for path, (_, _, current) in members.items() if id(current) in replaced}
    if strict:
        every = (*module.named_parameters(), *module.named_buffers())
        if missing := [path for path, current in every if id(current) not in replaced]:
            raise RuntimeError(f"functional_call: {type(module).__name__} has {', '.join(missing)} as well; strict wants all")
    try:
        for path, tensor in given.items():
            owner, name, _ = members[path]
            vars(owner)[name] = tensor
        return module(*(args if isinstance(args, tuple) else () if args is None else (args,)), **(kwargs or {}))
    finally:
        for path, tensor in given.items():
            owner, name, current = members[path]
            assigned, vars(owner)[name] = vars(owner)[name], current
            if assigned is not tensor and isinstance(parameter_and_buffer_dicts, dict) and path in parameter_and_buffer_dicts:
                parameter_and_buffer_dicts[path] = assigned


def _members(module: Module) -> dict[str, tuple[Module, str, Tensor]]:
    """path -> (the module that has it, its name there, the tensor)."""
    return {f"{path}.{name}" if path else name: (owner, name, current)
            for path, owner in module.named_modules(remove_duplicate=False)
            for name, current in vars(owner).items() if isinstance(current, Tensor)}


def _joined(given: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]]) -> Mapping[str, Tensor]:
    """The union of dicts with disjoint paths."""
    if isinstance(given, Mapping):
        return given
    joined: dict[str, Tensor] = {}
    for tensors in given:
        twice = sorted(joined.keys() & tensors.keys())
        if twice:
            raise ValueError(f"functional_call: {twice} appear in several of the dicts; want each path in one")
        joined.update(tensors)
    return joined


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """(parameters, buffers) of modules of one class, by path, stacked: for `vmap` over `functional_call`.

    The parameters are leaves that require a gradient if the modules' do. Raises ValueError for modules of different classes
    or modes, or for no modules.

    >>> parameters, buffers = genesis.func.stack_module_state([genesis.nn.Linear(2, 3) for _ in range(4)])
    >>> parameters["weight"].shape, buffers
    ((4, 3, 2), {})
    """
    if not models:
        raise ValueError("stack_module_state: got no modules; want one at least")
    first = models[0]
    if any(type(m) is not type(first) or m.training != first.training for m in models):
        raise ValueError("stack_module_state: want modules of one class, all training or none")
    stacked: tuple[dict[str, Tensor], dict[str, Tensor]] = ({}, {})
    for current, members in zip(stacked, ("named_parameters", "named_buffers"), strict=True):
        for rows in zip(*[getattr(m, members)() for m in models], strict=True):
            tensors = [tensor for _, tensor in rows]
            made = call(OPERATIONS["stack"], ([tensor.detach() for tensor in tensors],))
            current[rows[0][0]] = made.requires_grad_(tensors[0].requires_grad)
    return stacked


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Make the batch norms in `root` use only batch statistics, as `vmap` requires; returns `root`.

    >>> net = genesis.nn.Sequential(genesis.nn.BatchNorm1d(2))
    >>> genesis.func.replace_all_batch_norm_modules_(net)[0].running_mean is None
    True
    """
    for module in root.modules():
        if hasattr(module, "running_mean") and hasattr(module, "num_batches_tracked"):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


NOT_REPLAYABLE = ("functional_call",)
