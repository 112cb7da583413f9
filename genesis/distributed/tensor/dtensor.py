"""DTensor: a tensor of which each rank of a mesh has a part, a copy, or a term of a sum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

from genesis.distributed.device_mesh import DeviceMesh, init_device_mesh
from genesis.distributed.nn.functional import collective
from genesis.distributed.process_group import world
from genesis.distributed.tensor.operations import Call, check_beside
from genesis.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard, checked, part_at
from genesis.distributed.tensor.redistribution import Sharding, redistribute_local, redistributed
from genesis.execution.flush import flush_collectives
from genesis.functions.creation import full_like
from genesis.ir.annotations import Attributes
from genesis.ir.errors import ArgumentError
from genesis.ir.shapes import contiguous_strides
from genesis.nn.parameter import Parameter
from genesis.ops import collective as rows
from genesis.ops.registry import OPERATIONS
from genesis.pytree import leaves_of, map_tree, with_leaves
from genesis.tensor.composite import CompositeTensor, NotDenseError
from genesis.tensor.dispatch import call
from genesis.tensor.handle import CallArguments, Tensor
from genesis.tensor.in_place import write
from genesis.tensor.views import move_storage, view
from genesis.tracing.state import grad_mode, thread_state


def _of_whole(name: str) -> Callable[[DTensor], Any]:
    def method(self: DTensor) -> Any:
        return getattr(self.full_tensor(), name)()

    return method


def _new(name: str) -> Callable[..., DTensor]:
    def method(self: DTensor, *size: Any, **settings: Any) -> DTensor:
        made = getattr(self._local_tensor, name)(*size, **settings)
        placements = self._of_gradient() if tuple(made.shape) == self._shape else None
        return distribute_tensor(made, self.device_mesh, placements, src_data_rank=None)

    return method


class DTensor(CompositeTensor):
    """A tensor of shape `shape` distributed over the ranks of `device_mesh`, with one placement per axis of the mesh.

    It computes as a tensor: each rank its part, after redistributing operands where it must. Gradients are DTensors.
    `to_local()` is this rank's part, `full_tensor()` the whole.

    >>> mesh = genesis.distributed.init_device_mesh("cpu", (1,))
    >>> x = genesis.distributed.tensor.distribute_tensor(genesis.arange(4.0), mesh, [genesis.distributed.tensor.Shard(0)])
    >>> y = (x * 2).sum()
    >>> y.placements, y.full_tensor()
    ((Partial(sum),), tensor(12.))
    """

    parts: ClassVar[tuple[str, ...]] = ("_local_tensor",)
    hint: ClassVar[str] = "full_tensor() and to_local() make some"

    _local_tensor: Tensor
    _shape: tuple[int, ...]
    device_mesh: DeviceMesh
    placements: tuple[Placement, ...]
    _is_apart: bool = False  # from the DTensor whose view it is: writes would not reach that

    @staticmethod
    def from_local(
        local_tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
        run_check: bool = False, shape: Sequence[int] | None = None, stride: Sequence[int] | None = None,
    ) -> DTensor:
        """The tensor with each rank's part given; by default each rank has the whole.

        Args:
            shape: that of the whole, which parts of different lengths need.
            run_check: copy what is replicated from the first rank.
        """
        mesh, placed = _given(device_mesh, placements, local_tensor.shape)
        local, whole = local_tensor, [*local_tensor.shape]
        for axis, placement in enumerate(placed):
            if isinstance(placement, Shard):
                whole[placement.dim] *= mesh.size(axis)
            elif run_check and isinstance(placement, Replicate):
                local = collective(rows.broadcast_from, local, 0, mesh.get_group(axis).number)
        return _made(local, mesh, placed, tuple(whole if shape is None else shape))

    # ---- what it is ----
    @property
    def shape(self) -> Any:
        """The shape of the whole."""
        return self._shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._shape)

    @property
    def start(self) -> tuple[int, ...]:
        """The start of this rank's part in the whole, along each axis."""
        return tuple(part_at(self._shape, self.device_mesh, self.placements)[0])

    @property
    def sharding(self) -> Sharding | None:
        """How it is divided; None if no rank has a part only."""
        is_divided = any(isinstance(each, Shard) for each in self.placements)
        return Sharding(self.device_mesh, self.placements) if is_divided else None

    def stride(self, dim: int | None = None) -> Any:
        """The strides of the whole, row by row, or that of one axis."""
        strides = contiguous_strides(self._shape)
        return strides if dim is None else strides[dim]

    def is_contiguous(self, memory_format: object = None) -> bool:
        """Whether its elements follow each other: always."""
        return True

    def contiguous(self, memory_format: object = None) -> DTensor:
        """The tensor itself."""
        return self

    def described(self) -> str:
        return f"a DTensor of shape {self._shape} and placements {self.placements}"

    def __repr__(self) -> str:  # type: ignore[override]
        return f"DTensor(local_tensor={self._local_tensor}, device_mesh={self.device_mesh}, placements={self.placements})"

    __str__ = __repr__

    # ---- its parts ----
    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """This rank's part. Its gradient is held as the tensor is, or in `grad_placements`; the gradient of a term of a sum is
        that of the sum.
        """
        local = self._local_tensor
        for axis, (source, given) in enumerate(zip(self.placements, grad_placements or self.placements, strict=True)):
            if given != source and not isinstance(source, Partial):
                local = redistribute_local(local, source, source, self.device_mesh.get_group(axis), given)
        return local

    def redistribute(
        self, device_mesh: DeviceMesh | Sequence[Placement] | None = None, placements: Sequence[Placement] | None = None, *,
        async_op: bool = False, forward_dtype: Any = None, backward_dtype: Any = None,
    ) -> DTensor:
        """The same tensor with other placements, differentiably. Raises ValueError for another mesh."""
        if placements is None and not isinstance(device_mesh, DeviceMesh | None):
            device_mesh, placements = None, device_mesh
        if placements is None or device_mesh not in (None, self.device_mesh):
            raise ArgumentError(f"redistribute: placements {placements} on {device_mesh}; want placements on its own mesh")
        wanted = checked(placements, self.device_mesh, self._shape)
        if wanted == self.placements:
            return self
        local = redistributed(self._local_tensor, self.device_mesh, self.placements, wanted, self._shape)
        return self._with(local, wanted)

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """The whole tensor, on every rank of the mesh, each of which must call it."""
        whole = self.redistribute([Replicate()] * self.device_mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)

    # ---- computation ----
    def computed(self, name: str, arguments: CallArguments, attributes: Attributes) -> Any:
        if name == "full_like":
            settings = {key: value for key, value in attributes.items() if key != "layout"}
            return self.gradient_of(full_like(self._local_tensor, *arguments[1:], **settings))
        if name not in OPERATIONS:
            raise NotDenseError(self, name)
        row, mesh = OPERATIONS[name], self.device_mesh
        given = Call(row, arguments, attributes)
        tensors = [each if isinstance(each, DTensor) else self._beside(name, each) for each in given.tensors]
        if meshes := {each.device_mesh for each in tensors} - {mesh}:
            raise ArgumentError(f"{name}: DTensors of meshes {[mesh, *meshes]}; want one mesh")
        program = given.program(mesh, [(x._shape, x.dtype, x.placements, x.requires_grad) for x in tensors])
        if program.view is not None and self._local_tensor.storage_layout.is_contiguous:
            return self._with(view(self._local_tensor, "view_at", program.view), program.results[0][1], program.results[0][0])
        locals_ = [x._moved(*moves) for x, moves in zip(tensors, program.moves, strict=True)]
        flush_collectives(thread_state.traces.get(self.device.name))
        found = call(program.operation, [*locals_, *given.numbers])
        made = [_made(local, mesh, placements, shape, row.is_view)
                for local, (shape, placements) in zip(leaves_of(found), program.results, strict=True)]
        return with_leaves(found, iter(made))

    def _beside(self, name: str, tensor: Tensor) -> DTensor:
        """A plain tensor beside this one, as one that all ranks have. Raises RuntimeError unless they are known to."""
        check_beside(name, tensor)
        return self._with(tensor, (Replicate(),) * self.device_mesh.ndim, tuple(tensor.shape))

    def _moved(self, placements: tuple[Placement, ...], shares: Sequence[int]) -> Tensor:
        """This rank's part in other placements, whose gradients are summed along axes of the mesh."""
        local = self.redistribute(placements)._local_tensor
        for axis in shares:
            local = redistribute_local(local, Replicate(), Replicate(), self.device_mesh.get_group(axis), Partial())
        return local

    def written(self, value: Tensor) -> Self:
        """Write `value`, in this tensor's placements, into its parts. Raises RuntimeError for a view that is apart."""
        if self._is_apart:
            raise RuntimeError("in-place: this DTensor is a view of another, which would not change; want a write to that one")
        write(self._local_tensor, self._part_of(value).to(self.dtype))
        return self

    def drawn(self, draw: Callable[[Any], Tensor]) -> DTensor:
        return distribute_tensor(draw(self._shape), self.device_mesh, self._of_gradient(), src_data_rank=None)

    def moved_to(self, value: Tensor) -> None:
        move_storage(self._local_tensor, self._part_of(value))

    def _part_of(self, value: Tensor) -> Tensor:
        """This rank's part of a tensor in this one's placements. Raises ValueError for another shape."""
        if tuple(value.shape) != self._shape:
            raise ArgumentError(f"in-place: {self.described()} cannot hold a tensor of shape {tuple(value.shape)}")
        whole = value if isinstance(value, DTensor) else self._with(value, (Replicate(),) * self.device_mesh.ndim)
        return whole.redistribute(self.placements)._local_tensor

    def _with(self, local: Tensor, placements: tuple[Placement, ...], shape: tuple[int, ...] | None = None) -> DTensor:
        return _made(local, self.device_mesh, placements, self._shape if shape is None else shape)

    def with_elements(self, elements: Tensor) -> Any:
        return _made(elements, self.device_mesh, self.placements, self._shape, self._is_apart)

    def as_parameter(self, requires_grad: bool) -> DistributedParameter:
        return parameter_of(self._local_tensor, self.device_mesh, self.placements, self._shape, requires_grad)

    def gradient_of(self, gradient: Tensor) -> Any:
        return self._with(gradient, self._of_gradient())

    def seed_of(self, gradient: Tensor) -> Tensor:
        if not isinstance(gradient, DTensor) or gradient._shape != self._shape:
            met = f"{type(gradient).__name__} of shape {tuple(gradient.shape)}"
            raise ArgumentError(f"gradient: {met}; want a DTensor of shape {self._shape}")
        return gradient.redistribute(self._of_gradient())._local_tensor

    def _of_gradient(self) -> tuple[Placement, ...]:
        """The placements of its gradient: each term of a sum has the sum's."""
        return tuple([Replicate() if isinstance(each, Partial) else each for each in self.placements])

    def copy_(self, src: Tensor, non_blocking: bool = False) -> Self:
        """Write the elements of another tensor, broadcast."""
        return self.written(src.expand(self._shape) if tuple(src.shape) != self._shape else src)

    def to(self, *targets: Any, **settings: Any) -> DTensor:
        """The tensor in another dtype, with its gradients; its device stays that of the mesh."""
        given = [each._local_tensor if isinstance(each, DTensor) else each for each in targets]
        local = self._local_tensor.to(*given, **settings)
        return self if local is self._local_tensor else self._with(local, self.placements)

    def __setitem__(self, index: Any, value: Any) -> None:
        whole = self.full_tensor().clone()
        whole[map_tree(_whole, index)] = _whole(value)
        self.written(whole)

    new_empty, new_full, new_ones, new_zeros = map(_new, ("new_empty", "new_full", "new_ones", "new_zeros"))

    # What is read of it is read of the whole, on every rank of the mesh.
    item, tolist, __bool__, __float__, __int__, __complex__, __index__ = map(
        _of_whole, ("item", "tolist", "__bool__", "__float__", "__int__", "__complex__", "__index__"))


class DistributedParameter(DTensor, Parameter):
    """A parameter that is a DTensor, as `nn.Parameter` of one is. Its part is the leaf that optimizers move."""

    def leaf_part(self) -> Tensor:
        return self._local_tensor


def parameter_of(
    local: Tensor, device_mesh: DeviceMesh, placements: Sequence[Placement], shape: Sequence[int], requires_grad: bool = True
) -> DistributedParameter:
    """The parameter whose part on this rank shares the memory of `local`."""
    made = _made(Parameter(local, requires_grad), device_mesh, tuple(placements), tuple(shape))
    made.__class__ = DistributedParameter
    return made  # type: ignore[return-value]


def distribute_tensor(
    tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """Distributes `tensor` from rank `src_data_rank` along each axis; if that is None, each rank uses its own.

    Parts are cut as by `chunk`. By default each rank has the whole. The result is a leaf.
    """
    mesh, wanted = _given(device_mesh, placements, tensor.shape)
    if isinstance(tensor, DTensor):
        if tensor.device_mesh == mesh and (placements is None or tensor.placements == wanted):
            return tensor
        raise ArgumentError(f"distribute_tensor: {tensor.described()} is distributed already; want redistribute")
    with grad_mode(False):
        local = tensor.detach()
        for axis, placement in enumerate(wanted):
            group = mesh.get_group(axis)
            if src_data_rank is not None and group.size() > 1:
                local = collective(rows.broadcast_from, local, src_data_rank, group.number)
            local = redistribute_local(local, Replicate(), placement, group)
        local = local.clone()
    local.requires_grad = tensor.requires_grad
    return _made(local, mesh, wanted, tuple(tensor.shape))


def _given(
    device_mesh: DeviceMesh | None, placements: Sequence[Placement] | None, shape: Sequence[int]
) -> tuple[DeviceMesh, tuple[Placement, ...]]:
    """A mesh, by default of all ranks, and placements there, by default of copies."""
    mesh = device_mesh or init_device_mesh("cpu", (world().size(),))
    return mesh, checked(placements or [Replicate()] * mesh.ndim, mesh, shape)


def _made(
    local: Tensor, mesh: DeviceMesh, placements: tuple[Placement, ...], shape: tuple[int, ...], is_apart: bool = False
) -> DTensor:
    made = object.__new__(DTensor)
    made._local_tensor, made.device_mesh, made.placements, made._shape = local, mesh, placements, shape
    if is_apart:
        made._is_apart = True
    return made


def _whole(value: Any) -> Any:
    return value.full_tensor() if isinstance(value, DTensor) else value
