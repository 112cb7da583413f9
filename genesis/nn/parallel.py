"""Data parallelism in one process: the batch is split into one shard per device, each with a replica of the module.

Shards, replicas and results move between devices by `Tensor.to`, which is differentiable. The gradients of the replicas'
parameters are added on the parameters' device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from genesis.autograd.custom import Context
from genesis.autograd.data_parallel import scatter, total
from genesis.autograd.function import Function
from genesis.nn.members import own_attributes
from genesis.nn.module import Module
from genesis.ops.registry import OPERATIONS
from genesis.pytree import map_tree
from genesis.runtime.devices import Device, DeviceLike, device_of
from genesis.tensor.dispatch import call, moved
from genesis.tensor.handle import Tensor
from genesis.tensor.views import detach

__all__ = ["DataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter"]
__dir__ = __all__.copy


class DataParallel(Module):
    """`module` on several devices at once: each computes a shard of every input, and the outputs are joined.

    Args:
        module: its parameters and buffers are on the first of the devices, where gradients accumulate too. Every call
            makes new replicas; the first one's buffers are the module's own, so updates of them persist.
        device_ids: devices, names or numbers; only the module's own by default.
        output_device: the device of the joined output; by default the first one.
        dim: the axis along which tensors are split and joined.

    Tensors among the arguments, also in lists, tuples and dicts, are split; 0-d tensors and other values go to every device
    unchanged. If there are fewer rows than devices, only the first devices compute. 0-d outputs become a vector. Raises
    RuntimeError for a module on another device, ValueError for inputs of different lengths.

    >>> model = genesis.nn.DataParallel(genesis.nn.Linear(3, 2), ["cpu", "cpu:1"])
    >>> model(genesis.ones(5, 3)).shape, list(model.state_dict())
    ((5, 2), ['module.weight', 'module.bias'])
    """

    def __init__(
        self, module: Module, device_ids: Sequence[Any] | None = None, output_device: DeviceLike = None, dim: int = 0,
    ) -> None:
        super().__init__()
        own = next((tensor.device for tensor in _tensors(module)), device_of())
        listed = [own] if device_ids is None else [_named(device, own) for device in device_ids]
        if not listed:
            raise ValueError("DataParallel: device_ids is empty; want one device at least")
        self.module = module
        self.device_ids = listed
        self.output_device = listed[0] if output_device is None else _named(output_device, own)
        self.dim = dim

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """The replicas' outputs for their shards of the arguments, joined along `dim`."""
        for tensor in _tensors(self.module):
            if tensor.device is not self.device_ids[0]:
                raise RuntimeError(
                    f"DataParallel: the module has a tensor on {tensor.device}; want all on {self.device_ids[0]}, "
                    "the first of device_ids"
                )
        shares = scatter((inputs, options), self.device_ids, self.dim)
        replicas = replicate(self.module, self.device_ids[: len(shares)])
        outputs = [replica(*args, **kwargs) for replica, (args, kwargs) in zip(replicas, shares, strict=True)]
        if len(self.device_ids) == 1:
            return map_tree(lambda x: x.to(self.output_device) if isinstance(x, Tensor) else x, outputs[0])
        return gather(outputs, self.output_device, self.dim)

    def extra_repr(self) -> str:
        return f"device_ids={[str(device) for device in self.device_ids]}, output_device={str(self.output_device)!r}"


def data_parallel(
    module: Module, inputs: Any, device_ids: Sequence[Any] | None = None, output_device: DeviceLike = None, dim: int = 0,
    module_kwargs: Mapping[str, Any] | None = None,
) -> Any:
    """The result of `DataParallel(module)` for `inputs`, a tensor or a tuple.

    >>> data_parallel(genesis.nn.Identity(), genesis.ones(2, 1)).shape
    (2, 1)
    """
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*given, **module_kwargs or {})


def parallel_apply(
    modules: Sequence[Module], inputs: Sequence[Any], kwargs_tup: Sequence[Mapping[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """The results of modules for their inputs, each a tensor or a tuple.

    >>> parallel_apply([genesis.nn.ReLU(), genesis.nn.Identity()], [genesis.tensor(-1.0)] * 2)
    [tensor(0.), tensor(-1.)]
    """
    named = kwargs_tup or [{}] * len(modules)
    return [module(*(given if isinstance(given, tuple) else (given,)), **keywords)
            for module, given, keywords in zip(modules, inputs, named, strict=True)]


def _named(device: DeviceLike, like: Device) -> Device:
    """A device by name, or by number among those of the kind of `like`."""
    return device_of(f"{like.type}:{device}" if isinstance(device, int) else device)


def _tensors(module: Module) -> Iterator[Tensor]:
    yield from module.parameters()
    yield from module.buffers()


class _Replicate(Function):
    """All tensors repeated `count` times, in order; backward reduces the gradients of each tensor's copies."""

    @staticmethod
    def forward(ctx: Context, *tensors: Tensor, count: int) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        return tuple([detach(tensor) for _ in range(count) for tensor in tensors])

    @staticmethod
    def backward(ctx: Context, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        totals: list[Tensor | None] = []
        each = len(ctx.needs_input_grad)
        for number in range(each):
            parts = [gradient for gradient in gradients[number::each] if gradient is not None]
            totals.append(total(parts, parts[0].device) if parts else None)
        return tuple(totals)


def replicate(module: Module, devices: Sequence[Any]) -> list[Module]:
    """A copy of the module per device, whose gradients flow to the module's parameters. For one device, its own, it is the
    module itself.

    A copy's parameters are results, not Parameters, so `parameters()` is empty. On the module's device it shares the buffers.

    >>> _, copy = replicate(genesis.nn.Linear(3, 2), ["cpu", "cpu:1"])
    >>> copy.weight.device, list(copy.parameters())
    (device(type='cpu', index=1), [])
    """
    tensors = list({id(tensor): tensor for tensor in _tensors(module)}.values())
    targets = [device_of(device) for device in devices]
    if len(targets) == 1 and all(tensor.device is targets[0] for tensor in tensors):
        return [module]
    trained = [tensor for tensor in tensors if tensor.requires_grad]
    fixed = [tensor for tensor in tensors if not tensor.requires_grad]
    spread = _Replicate.apply(*trained, count=len(targets)) if trained else ()
    replicas = []
    for number, device in enumerate(targets):
        own = spread[number * len(trained) : (number + 1) * len(trained)]
        there: dict[int, Any] = dict(zip(map(id, [*trained, *fixed]), moved([*own, *fixed], device), strict=True))
        copies = {id(each): object.__new__(type(each)) for each in module.modules()}
        there.update(copies)
        for each in module.modules():
            attributes = {name: there.get(id(value), value) for name, value in vars(each).items()}
            own_attributes(copies[id(each)], attributes, {"_parameters": {}})
        replicas.append(copies[id(module)])
    return replicas


def gather(outputs: Sequence[Any], device: DeviceLike, dim: int = 0) -> Any:
    """The outputs of several devices as one on `device`: tensors joined along `dim`, 0-d ones into a vector.

    Lists, tuples and dicts are gathered member by member; other values must be equal. Raises TypeError if they are not.

    >>> gather([(genesis.ones(2), 3), (genesis.zeros(1, device="cpu:1"), 3)], "cpu")
    (tensor([1., 1., 0.]), 3)
    """
    first = outputs[0]
    if any(type(output) is not type(first) for output in outputs):
        raise TypeError(f"gather: outputs are of different types: {[type(output).__name__ for output in outputs]}")
    if isinstance(first, Tensor):
        parts = [output.to(device) for output in outputs]
        if not first.shape:
            return call(OPERATIONS["stack"], (parts,))
        return call(OPERATIONS["cat"], (parts, dim)) if len(parts) > 1 else parts[0]
    if isinstance(first, dict):
        if any(output.keys() != first.keys() for output in outputs):
            raise TypeError(f"gather: outputs are dicts of different keys: {[list(output) for output in outputs]}")
        return type(first)((key, gather([output[key] for output in outputs], device, dim)) for key in first)
    if isinstance(first, list | tuple):
        if any(len(output) != len(first) for output in outputs):
            raise TypeError(f"gather: outputs have different lengths: {[len(output) for output in outputs]}")
        members = [gather(member, device, dim) for member in zip(*outputs, strict=True)]
        return type(first)(*members) if hasattr(first, "_fields") else type(first)(members)
    if any(output != first for output in outputs):
        raise TypeError(f"gather: cannot join {[*outputs]!r:.80}; want tensors, containers of them, or equal values")
    return first
