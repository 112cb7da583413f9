"""In-place collectives with PyTorch's API: recorded like all operations, so they are part of compiled programs.

They run in program order, at the latest when a dependent value is read, at a barrier, a message, or the end of the script. They
are not differentiable; `genesis.distributed.nn.functional` has differentiable ones.
"""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

from genesis.distributed.flat import check_count, check_lists, check_tensors, joined, put
from genesis.distributed.nn.functional import collective
from genesis.distributed.process_group import NON_GROUP_MEMBER, ProcessGroup, group_of, root_of, seconds_of, synchronize
from genesis.distributed.work import Work
from genesis.execution.flush import flush_all
from genesis.ir.errors import ArgumentError, ArgumentTypeError
from genesis.ops import collective as rows
from genesis.ops.registry import OPERATIONS, Operation
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor
from genesis.tracing.recording_hooks import refuse
from genesis.tracing.state import grad_mode


class ReduceOp(StrEnum):
    """Reductions of ranks' values; `ReduceOp.SUM` and "sum" are the same."""

    SUM = "sum"
    PRODUCT = "prod"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"
    AVG = "avg"


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]  # where PyTorch has the members


def all_reduce(tensor: Tensor, op: str = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Replace `tensor` on every rank by the sum (or another reduction) of all ranks' tensors, of one shape and dtype.

    Returns a Work with `async_op`, otherwise, and on ranks outside of the group, None.

    >>> x = genesis.tensor([1.0, 2.0])
    >>> genesis.distributed.all_reduce(x, op=genesis.distributed.ReduceOp.AVG)
    >>> x
    tensor([1., 2.])
    """
    return _in_place(tensor, group, async_op, rows.all_reduce, str(op))


def reduce(tensor: Tensor, dst: int | None = None, op: str = ReduceOp.SUM, group: Any = None, async_op: bool = False,
           group_dst: int | None = None) -> Work | None:
    """As `all_reduce`, but only on rank `dst`; other ranks' tensors do not change."""
    return _in_place(tensor, group, async_op, rows.reduce_to, (dst, group_dst), str(op))


def broadcast(tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False,
              group_src: int | None = None) -> Work | None:
    """Replace `tensor` on every rank by that of rank `src`."""
    return _in_place(tensor, group, async_op, rows.broadcast_from, (src, group_src))


def all_reduce_coalesced(
    tensors: Tensor | Sequence[Tensor], op: str = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """`all_reduce` of each of several tensors of one dtype. Deprecated."""
    _warn_of_coalesced("all_reduce_coalesced")
    given = [tensors] if isinstance(tensors, Tensor) else tensors
    _check_of_one_dtype("all_reduce_coalesced", given)
    for tensor in given:  # in one collective, tensors of other shapes on another rank would be taken for these
        all_reduce(tensor, op, group)
    return Work(given) if async_op and group is not NON_GROUP_MEMBER else None


def all_gather_coalesced(
    output_tensor_lists: Sequence[Sequence[Tensor]], input_tensor_list: Sequence[Tensor], group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Fill `output_tensor_lists` with all ranks' lists, of tensors of one dtype, in one collective. Deprecated."""
    _warn_of_coalesced("all_gather_coalesced")
    _check_of_one_dtype("all_gather_coalesced", input_tensor_list, *output_tensor_lists)

    def fill(own: ProcessGroup) -> Sequence[Tensor]:
        check_count("all_gather_coalesced", output_tensor_lists, own)
        for target, tensor in zip(output_tensor_lists[own.rank()], input_tensor_list, strict=True):
            _check_like("all_gather_coalesced", target, tensor)
        targets = [target for tensors in output_tensor_lists for target in tensors]
        sizes = tuple([sum([target.numel() for target in tensors]) for tensors in output_tensor_lists])
        return put(targets, collective(rows.all_gather, joined(input_tensor_list), sizes, own.number))

    return _begun(group, async_op, fill)


def all_gather(tensor_list: Sequence[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """Fill `tensor_list` with all ranks' tensors, in the order of the ranks; they may be of different shapes."""
    check_lists("all_gather", tensor_list)
    check_tensors("all_gather", tensor)

    def fill(own: ProcessGroup) -> Sequence[Tensor]:
        _check_list("all_gather", tensor_list, own)
        _check_like("all_gather", tensor_list[own.rank()], tensor)
        return put(tensor_list, collective(rows.all_gather, joined([tensor]), _sizes(tensor_list), own.number))

    return _begun(group, async_op, fill)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Fill `output_tensor` with all ranks' tensors, joined along axis 0, or stacked if it has one more axis."""
    return _into(output_tensor, input_tensor, group, async_op, "all_gather_into_tensor", rows.all_gather, (None,))


all_gather_single = all_gather_into_tensor


def gather(tensor: Tensor, gather_list: Sequence[Tensor] | None = None, dst: int | None = None, group: Any = None,
           async_op: bool = False, group_dst: int | None = None) -> Work | None:
    """Fill `gather_list` on rank `dst` with all ranks' tensors, of one shape; other ranks pass none."""
    check_lists("gather", gather_list or [])
    check_tensors("gather", tensor)

    def fill(own: ProcessGroup) -> Sequence[Tensor]:
        root = _root("gather", gather_list, own, dst, group_dst)
        for target in gather_list or ():
            _check_like("gather", target, tensor)
        whole = collective(rows.gather_to, tensor.detach(), root, own.number)
        return put(gather_list, whole.reshape(-1)) if gather_list else [whole]

    return _begun(group, async_op, fill)


def scatter(tensor: Tensor, scatter_list: Sequence[Tensor] | None = None, src: int | None = None, group: Any = None,
            async_op: bool = False, group_src: int | None = None) -> Work | None:
    """Replace `tensor` on each rank by its entry of rank `src`'s `scatter_list`; other ranks pass none."""
    check_lists("scatter", scatter_list or [])
    check_tensors("scatter", tensor)

    def fill(own: ProcessGroup) -> Sequence[Tensor]:
        root = _root("scatter", scatter_list, own, src, group_src)
        for part in scatter_list or ():
            _check_like("scatter", part, tensor)
        given = call(OPERATIONS["stack"], (list(scatter_list),)) if scatter_list else tensor.detach()
        return put([tensor], collective(rows.scatter_from, given, root, own.number))

    return _begun(group, async_op, fill)


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: str = ReduceOp.SUM, group: Any = None,
                   async_op: bool = False) -> Work | None:
    """Reduce the ranks' lists member by member; rank k's `output` is member k; members may have different shapes."""
    check_lists("reduce_scatter", input_list)
    check_tensors("reduce_scatter", output)

    def fill(own: ProcessGroup) -> Sequence[Tensor]:
        _check_list("reduce_scatter", input_list, own)
        _check_like("reduce_scatter", output, input_list[own.rank()])
        return put([output], collective(rows.reduce_scatter, joined(input_list), str(op), _sizes(input_list), own.number))

    return _begun(group, async_op, fill)


def reduce_scatter_tensor(output: Tensor, input: Tensor, op: str = ReduceOp.SUM, group: Any = None,
                          async_op: bool = False) -> Work | None:
    """Reduce the ranks' `input`, and cut it along axis 0: rank k's `output` is part k."""
    return _into(output, input, group, async_op, "reduce_scatter_tensor", rows.reduce_scatter, (str(op), None))


reduce_scatter_single = reduce_scatter_tensor


def all_to_all(output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None,
               async_op: bool = False) -> Work | None:
    """Send member k of the input to rank k, and fill the output with the received tensors, in rank order."""
    check_lists("all_to_all", output_tensor_list, input_tensor_list)

    def fill(own: ProcessGroup) -> Sequence[Tensor]:
        _check_list("all_to_all", output_tensor_list, own)
        _check_list("all_to_all", input_tensor_list, own)
        sizes = _sizes(input_tensor_list), _sizes(output_tensor_list)
        return put(output_tensor_list, collective(rows.all_to_all, joined(input_tensor_list), *sizes, own.number))

    return _begun(group, async_op, fill)


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None, group: Any = None, async_op: bool = False,
) -> Work | None:
    """Cut `input` along axis 0, send part k to rank k, and fill `output` with the received parts. Parts are equal without
    sizes."""
    sizes = tuple(input_split_sizes) if input_split_sizes else None, tuple(output_split_sizes) if output_split_sizes else None
    return _into(output, input, group, async_op, "all_to_all_single", rows.all_to_all, sizes)


def barrier(
    group: Any = None, async_op: bool = False, device_ids: Sequence[int] | None = None,
    timeout: datetime.timedelta | float | None = None,
) -> Work | None:
    """Run pending work, and wait for the other ranks, at most `timeout`, by default the group's."""
    if group is NON_GROUP_MEMBER:
        return None
    _wait(group, "", timeout)
    return Work() if async_op else None


def monitored_barrier(
    group: Any = None, timeout: datetime.timedelta | float | None = None, wait_all_ranks: bool = False
) -> None:
    """As `barrier`; the CollectiveError, a RuntimeError, lists the missing ranks."""
    if group is not NON_GROUP_MEMBER:
        _wait(group, "monitored", timeout)


def _wait(group: Any, said: str, timeout: datetime.timedelta | float | None) -> None:
    refuse("a barrier")
    flush_all()
    own = group_of(group)
    before = own.handle.timeout
    own.handle.timeout = before if timeout is None else seconds_of(timeout)
    try:
        synchronize(own, said)
    finally:
        own.handle.timeout = before


# ---- shared code ----
def _begun(group: Any, async_op: bool, fill: Callable[[ProcessGroup], Sequence[Tensor]]) -> Work | None:
    """Runs `fill(group)`, which returns the tensors that it wrote, without gradients; outside of the group nothing."""
    if group is NON_GROUP_MEMBER:
        return None
    with grad_mode(False):
        written = fill(group_of(group))
    return Work(written) if async_op else None


def _sizes(tensors: Sequence[Tensor]) -> tuple[int, ...]:
    return tuple([tensor.numel() for tensor in tensors])


def _in_place(tensor: Tensor, group: Any, async_op: bool, row: Operation, *settings: Any) -> Work | None:
    """Writes a row's result into its operand. A pair among the settings is the root: its global rank, its rank in the group."""
    check_tensors(row.name.removesuffix("_to").removesuffix("_from"), tensor)

    def fill(own: ProcessGroup) -> Sequence[Tensor]:
        known = [root_of(own, *setting) if isinstance(setting, tuple) else setting for setting in settings]
        return put([tensor], collective(row, tensor.detach(), *known, own.number))

    return _begun(group, async_op, fill)


def _into(
    output: Tensor, input: Tensor, group: Any, async_op: bool, name: str, row: Operation,
    settings: tuple[Any, ...],
) -> Work | None:
    """Writes a row's result into `output`, of the same dtype and number of elements."""
    check_tensors(name, output, input)

    def fill(own: ProcessGroup) -> Sequence[Tensor]:
        result = collective(row, input.detach(), *settings, own.number)
        if output.numel() != result.numel() or output.dtype is not result.dtype:
            wanted = f"{result.dtype.name}{[*result.shape]}"
            raise ArgumentError(f"{name}: the output is {output.dtype.name}{[*output.shape]}; want {wanted}")
        return put([output], result)

    return _begun(group, async_op, fill)


def _warn_of_coalesced(name: str) -> None:
    warnings.warn(f"{name} will be deprecated; want {name.removesuffix('_coalesced')}", FutureWarning, stacklevel=3)


def _check_of_one_dtype(name: str, *lists: Sequence[Tensor]) -> None:
    check_lists(name, *lists)
    if len({tensor.dtype for tensors in lists for tensor in tensors}) != 1:
        raise ArgumentTypeError(f"{name}: want tensors of one dtype, one at least")


def _check_list(name: str, tensors: Sequence[Tensor], group: ProcessGroup) -> None:
    check_count(name, tensors, group)
    _check_of_one_dtype(name, tensors)


def _check_like(name: str, target: Tensor, tensor: Tensor) -> None:
    if target.shape != tensor.shape or target.dtype is not tensor.dtype:
        found = f"{target.dtype.name}{[*target.shape]} and {tensor.dtype.name}{[*tensor.shape]}"
        raise ArgumentError(f"{name}: {found}; want the same shape and dtype")


def _root(name: str, tensors: Sequence[Tensor] | None, own: ProcessGroup, of_all: int | None, of_group: int | None) -> int:
    """The root's rank in the group; only the root passes a list."""
    root = root_of(own, of_all, of_group)
    here = own.rank() == root
    if here is not bool(tensors):
        said = "missing on" if here else "given on another rank than"
        raise ArgumentError(f"{name}: {name}_list is {said} the root, rank {root}")
    if tensors:
        _check_list(name, tensors, own)
    return root


NOT_REPLAYABLE = ("barrier", "monitored_barrier")
