"""DTensor: a tensor of which each rank of a mesh has a part, a copy, or a term of a sum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn, Self, SupportsIndex

from genesis.distributed.device_mesh import DeviceMesh, init_device_mesh
from genesis.distributed.nn.functional import collective
from genesis.distributed.process_group import world
from genesis.distributed.tensor.operations import Part, computed
from genesis.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from genesis.distributed.tensor.redistribution import Sharding, cut, redistribute_local
from genesis.functions.creation import full_like
from genesis.ir.annotations import Attributes
from genesis.ir.errors import ArgumentError
from genesis.ir.shapes import contiguous_strides
from genesis.ops import collective as rows
from genesis.ops.registry import OPERATIONS
from genesis.pytree import map_tree
from genesis.tensor.composite import CompositeTensor, NotDenseError
from genesis.tensor.handle import CallArguments, Tensor
from genesis.tensor.in_place import move_storage, write
from genesis.tracing.state import recording


def _of_whole(name: str) -> Callable[[DTensor], Any]:
    def method(self: DTensor) -> Any:
        return getattr(self.full_tensor(), name)()

    return method


class DTensor(CompositeTensor):
    """A tensor of shape `shape` distributed over the ranks of `device_mesh`, with one placement per axis of the mesh.

    It computes as a tensor: each rank its part, after redistributing operands where it must. Gradients are DTensors.
    `to_local()` is this rank's part, `full_tensor()` the whole.

    >>> genesis.distributed.init_process_group()
    >>> mesh = genesis.distributed.init_device_mesh("cpu", (1,))
    >>> x = genesis.distributed.tensor.distribute_tensor(genesis.arange(4.0), mesh, [genesis.distributed.tensor.Shard(0)])
    >>> y = (x * 2).sum()
    >>> y.placements, y.full_tensor()
    ((Partial(reduce_op='sum'),), tensor(12.))
    >>> genesis.distributed.destroy_process_group()
    """

    parts: ClassVar[tuple[str, ...]] = ("_local",)
    hint: ClassVar[str] = "full_tensor() and to_local() make some"

    _local: Tensor
    _shape: tuple[int, ...]
    device_mesh: DeviceMesh
    placements: tuple[Placement, ...]
    _is_view: bool = False  # of another DTensor, whose memory it does not share

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
        mesh = device_mesh or init_device_mesh("cpu", (world().size(),))
        placed = _checked(placements or [Replicate()] * mesh.ndim, mesh, local_tensor.ndim, tuple(local_tensor.shape))
        local = local_tensor
        for axis, placement in enumerate(placed if run_check else ()):
            if isinstance(placement, Replicate):
                local = collective(rows.broadcast_from, local, 0, mesh.get_group(axis).number)
        return _made(local, mesh, placed, tuple(shape) if shape is not None else _whole_shape(local, mesh, placed))

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
        start, extent = [0] * self.ndim, [*self._shape]
        for axis, placement in enumerate(self.placements):
            if isinstance(placement, Shard):
                group, dim = self.device_mesh.get_group(axis), placement.dim
                sizes = rows.chunks(extent[dim], group.size())
                start[dim] += sum(sizes[: group.rank()])
                extent[dim] = sizes[group.rank()]
        return tuple(start)

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
        return f"DTensor(local_tensor={self._local}, device_mesh={self.device_mesh}, placements={self.placements})"

    __str__ = __repr__

    # ---- its parts ----

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """This rank's part. Its gradient is held as the tensor is, or in `grad_placements`; the gradient of a term of a sum is
        that of the sum.
        """
        local = self._local
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
        mesh, shape = self.device_mesh, self._shape
        wanted, local = _checked(placements, mesh, self.ndim, shape), self._local
        steps = [*zip(range(len(wanted)), self.placements, wanted, strict=True)]
        if _shares_an_axis(self.placements) or _shares_an_axis(wanted):  # nested parts are joined from the last mesh axis on
            steps = [*[(axis, old, Replicate()) for axis, old, _ in reversed(steps)],
                     *[(axis, Replicate(), new) for axis, _, new in steps]]
        placed = [*self.placements]
        for axis, old, new in steps:
            if old != new:
                extent = _extents(shape, mesh, placed[:axis])[old.dim] if isinstance(old, Shard) else None
                local = redistribute_local(local, old, new, mesh.get_group(axis), extent=extent)
                placed[axis] = new
        return self if wanted == self.placements else _made(local, mesh, wanted, shape)

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """The whole tensor, on every rank of the mesh, each of which must call it."""
        whole = self.redistribute([Replicate()] * self.device_mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)

    # ---- computation ----

    def computed(self, name: str, arguments: CallArguments, attributes: Attributes) -> Any:
        if name == "full_like":
            settings = {key: value for key, value in attributes.items() if key != "layout"}
            return self.gradient_of(full_like(self._local, *arguments[1:], **settings))
        if name not in OPERATIONS:
            raise NotDenseError(self, name)
        row = OPERATIONS[name]
        return computed(row, arguments, attributes, _part, _moved, lambda part: _made(*part, is_view=row.is_view))

    def written(self, value: Tensor) -> Self:
        """Write `value`, in this tensor's placements, into its parts. Raises RuntimeError for a view."""
        if self._is_view:
            raise RuntimeError("in-place: this DTensor is a view of another, which would not change; want a write to that one")
        write(self._local, self._part_of(value).to(self.dtype))
        return self

    def drawn(self, draw: Callable[[Any], Tensor]) -> DTensor:
        return distribute_tensor(draw(self._shape), self.device_mesh, self._of_gradient(), src_data_rank=None)

    def moved_to(self, value: Tensor) -> None:
        move_storage(self._local, self._part_of(value))

    def _part_of(self, value: Tensor) -> Tensor:
        """This rank's part of a tensor in this one's placements. Raises ValueError for another shape."""
        if tuple(value.shape) != self._shape:
            raise ArgumentError(f"in-place: {self.described()} cannot hold a tensor of shape {tuple(value.shape)}")
        if not isinstance(value, DTensor):
            value = _made(value, self.device_mesh, (Replicate(),) * self.device_mesh.ndim, self._shape)
        return value.redistribute(self.placements)._local

    def with_elements(self, elements: Tensor) -> Any:
        return _made(elements, self.device_mesh, self.placements, self._shape, is_view=self._is_view)

    def leaf_part(self) -> Tensor:
        leaf = super().leaf_part()
        if any(isinstance(each, Shard) for each in self.placements):
            leaf.sharding = self.sharding  # type: ignore[attr-defined]
        return leaf

    @property
    def sharding(self) -> Sharding:
        """How it is distributed."""
        return Sharding(self.device_mesh, self.placements, self._shape)

    def gradient_of(self, gradient: Tensor) -> Any:
        return _made(gradient, self.device_mesh, self._of_gradient(), self._shape)

    def seed_of(self, gradient: Tensor) -> Tensor:
        if not isinstance(gradient, DTensor) or gradient._shape != self._shape:
            met = f"{type(gradient).__name__} of shape {tuple(gradient.shape)}"
            raise ArgumentError(f"gradient: {met}; want a DTensor of shape {self._shape}")
        return gradient.redistribute(self._of_gradient())._local

    def _of_gradient(self) -> tuple[Placement, ...]:
        """The placements of its gradient: each term of a sum has the sum's."""
        return tuple([Replicate() if isinstance(each, Partial) else each for each in self.placements])

    def copy_(self, src: Tensor, non_blocking: bool = False) -> Self:
        """Write the elements of another tensor, broadcast."""
        return self.written(src.expand(self._shape) if tuple(src.shape) != self._shape else src)

    def to(self, *targets: Any, **settings: Any) -> DTensor:
        """The tensor in another dtype, with its gradients; its device stays that of the mesh."""
        local = self._local.to(*[each._local if isinstance(each, DTensor) else each for each in targets], **settings)
        return self if local is self._local else _made(local, self.device_mesh, self.placements, self._shape)

    def __setitem__(self, index: Any, value: Any) -> None:
        whole = self.full_tensor().clone()
        whole[map_tree(_whole, index)] = _whole(value)
        self.written(whole)

    # What is read of it is read of the whole, on every rank of the mesh.
    item, tolist, __bool__, __float__, __int__, __complex__, __index__ = map(
        _of_whole, ("item", "tolist", "__bool__", "__float__", "__int__", "__complex__", "__index__"))

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("a DTensor is of several ranks; want full_tensor(), or genesis.distributed.checkpoint.save")


def distribute_tensor(
    tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """Distributes `tensor` from rank `src_data_rank` along each axis; if that is None, each rank uses its own.

    Parts are cut as by `chunk`. By default each rank has the whole. The result is a leaf. Raises ValueError for Partial.
    """
    mesh = device_mesh or init_device_mesh("cpu", (world().size(),))
    if isinstance(tensor, DTensor):
        if tensor.device_mesh == mesh and tensor.placements == tuple(placements or tensor.placements):
            return tensor
        raise ArgumentError(f"distribute_tensor: {tensor.described()} is distributed already; want redistribute")
    shape = tuple(tensor.shape)
    wanted = _checked(placements or [Replicate()] * mesh.ndim, mesh, tensor.ndim, shape)
    with recording(False) as again, again:
        local = tensor.detach()
        for axis, placement in enumerate(wanted):
            group = mesh.get_group(axis)
            if src_data_rank is not None and group.size() > 1:
                local = collective(rows.broadcast_from, local, src_data_rank, group.number)
            if isinstance(placement, Partial):
                raise ArgumentError("distribute_tensor: Partial; want Shard or Replicate")
            if isinstance(placement, Shard):
                local = cut(local, placement.dim, group)
        local = local.clone()
    local.requires_grad = tensor.requires_grad
    return _made(local, mesh, wanted, shape)


def _made(
    local: Tensor, mesh: DeviceMesh, placements: tuple[Placement, ...], shape: tuple[int, ...], *, is_view: bool = False
) -> DTensor:
    made = object.__new__(DTensor)
    made._local, made.device_mesh, made.placements, made._shape = local, mesh, placements, shape
    if is_view:
        made._is_view = True
    return made


def _whole(value: Any) -> Any:
    return value.full_tensor() if isinstance(value, DTensor) else value


def _part(tensor: Tensor) -> Part | None:
    if not isinstance(tensor, DTensor):
        return None
    return Part(tensor._local, tensor.device_mesh, tensor.placements, tensor._shape)


def _moved(tensor: Any, placements: tuple[Placement, ...], shares: Sequence[int]) -> Tensor:
    """This rank's part in other placements, whose gradients are summed along axes of the mesh."""
    local = tensor.redistribute(placements)._local
    for axis in shares:
        local = redistribute_local(local, Replicate(), Replicate(), tensor.device_mesh.get_group(axis), Partial())
    return local


def _extents(shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]) -> list[int]:
    """The shape of this rank's part of a tensor of `shape`."""
    extents = [*shape]
    for axis, placement in enumerate(placements):
        if isinstance(placement, Shard):
            group = mesh.get_group(axis)
            extents[placement.dim] = rows.chunks(extents[placement.dim], group.size())[group.rank()]
    return extents


def _whole_shape(local: Tensor, mesh: DeviceMesh, placements: Sequence[Placement]) -> tuple[int, ...]:
    shape = [*local.shape]
    for axis, placement in enumerate(placements):
        if isinstance(placement, Shard):
            shape[placement.dim] *= mesh.size(axis)
    return tuple(shape)


def _checked(
    placements: Sequence[Placement], mesh: DeviceMesh, ndim: int, shape: Sequence[int]
) -> tuple[Placement, ...]:
    """Placements with nonnegative axes. Raises ValueError unless there is one per axis of the mesh."""
    if len(placements) != mesh.ndim or not all(isinstance(each, Placement) for each in placements):
        raise ArgumentError(f"placements {placements}; want {mesh.ndim}, one for each axis of the mesh")
    for each in placements:
        if isinstance(each, Shard) and not -ndim <= each.dim < ndim:
            raise IndexError(f"{each} of a tensor of shape {tuple(shape)}; want one of its axes")
    return tuple([Shard(each.dim % ndim) if isinstance(each, Shard) else each for each in placements])


def _shares_an_axis(placements: Sequence[Placement]) -> bool:
    """Whether several axes of the mesh shard the same axis of the tensor."""
    cuts = [each.dim for each in placements if isinstance(each, Shard)]
    return len({*cuts}) < len(cuts)
