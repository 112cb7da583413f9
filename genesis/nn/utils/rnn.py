"""Sequences of several lengths: padded to one tensor, or packed without padding, the way recurrent layers take them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from genesis.functions.creation import full
from genesis.functions.from_data import tensor
from genesis.functions.selection import where
from genesis.ir.dtypes import DType, float16, float32, float64, int8, int16, int32, int64, uint8
from genesis.ir.errors import ArgumentError
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor, from_values
from genesis.tensor.in_memory import all_in_memory, number_for
from genesis.tracing.state import grad_mode, thread_state
from genesis.tracing.trace import LOCK

__all__ = [
    "PackedSequence", "invert_permutation", "pack_as", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence", "padded", "unpack_sequence", "unpad_sequence",
]
__dir__ = __all__.copy


@dataclass(frozen=True, eq=False)
class Packing:
    """Steps (l, n, ..) whose first `sizes` are packed, in an order of the sequences; None if they are in order.

    Nobody else has the steps, so they stay as they are. A call returns the packed elements, derived from the steps if these
    require a gradient, wherever it is made.
    """

    steps: Tensor
    sizes: np.ndarray
    order: np.ndarray | None

    def __call__(self) -> Tensor:
        steps = self.steps
        with grad_mode(steps.requires_grad or thread_state.grad_enabled):
            at = tensor(_packed_indices(self.sizes, self.order, steps.shape[1]), device=steps.device)
            return steps.reshape(-1, *steps.shape[2:]).index_select(0, at)


class _Members(NamedTuple):
    data: Any
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None


def _converted(name: str, dtype: DType) -> Callable[[PackedSequence], PackedSequence]:
    def converted(self: PackedSequence) -> PackedSequence:
        return self.to(dtype)

    converted.__name__, converted.__qualname__ = name, f"PackedSequence.{name}"
    converted.__doc__ = f"The sequences as {dtype.name}."
    return converted


class PackedSequence(_Members):
    """Sequences from the longest to the shortest, one after the other at each step.

    `data` (sum of the lengths, ..) holds all first steps, then all second ones, and so on; `batch_sizes` says how many
    sequences reach each step. `sorted_indices` are the sequences' positions before they were sorted, `unsorted_indices` the
    way back, found from them if not given; both are None where they came sorted.

    Made from a `Packing`, `data` is computed when it is asked for. Recurrent layers do without: the number of its elements is
    new in nearly each batch, and a program that has it is planned for each.
    """

    _data: Tensor | None = None

    def __new__(
        cls, data: Tensor | Packing, batch_sizes: Tensor, sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    @property
    def packing(self) -> Packing | None:
        """What `data` is to be computed from; None if it is there."""
        first = tuple.__getitem__(self, 0)
        return first if isinstance(first, Packing) and self._data is None else None

    @property
    def data(self) -> Tensor:  # type: ignore[override]
        """The elements."""
        packing = self.packing
        if packing is not None:
            self._data = packing()
        found: Tensor = tuple.__getitem__(self, 0) if self._data is None else self._data
        return found

    def __iter__(self) -> Iterator[Any]: return iter((self.data, *tuple.__getitem__(self, slice(1, None))))
    def __getitem__(self, index: Any) -> Any: return tuple(self)[index]
    def __repr__(self) -> str: return repr(_Members(*self)).replace("_Members", "PackedSequence", 1)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The sequences with `data` of another dtype or on another device, as `Tensor.to` takes them.

        >>> pack_sequence([genesis.tensor([1, 2])]).to(genesis.float32).data
        tensor([1., 2.])
        """
        data = self.data.to(*args, **kwargs)
        indices = [None if at is None else at.to(data.device) for at in (self.sorted_indices, self.unsorted_indices)]
        return self if data is self.data else PackedSequence(data, self.batch_sizes, *indices)

    def cpu(self) -> PackedSequence:
        """The sequences on the CPU."""
        return self.to("cpu")

    def cuda(self, device: Any = None) -> PackedSequence:
        """The sequences on a GPU, a device or its number."""
        return self.to(f"cuda:{device}" if isinstance(device, int) else device or "cuda")

    float, double, half = _converted("float", float32), _converted("double", float64), _converted("half", float16)
    long, int, short = _converted("long", int64), _converted("int", int32), _converted("short", int16)
    char, byte = _converted("char", int8), _converted("byte", uint8)

    def pin_memory(self) -> PackedSequence:
        """The sequences: no memory is pinned."""
        return self

    def is_pinned(self) -> bool:
        """Whether the data's memory is pinned: no."""
        return False

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a GPU."""
        return self.data.device.type == "cuda"


# ---- padding ----
def pad_sequence(
    sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """The sequences (l_i, ..) as one tensor (l, n, ..), or (n, l, ..) with `batch_first`; `padding_value` where they end.

    Raises ValueError for no sequences, for shapes that differ beyond their lengths, and for another `padding_side` than
    "right" and "left".

    >>> pad_sequence([genesis.tensor([1, 2, 3]), genesis.tensor([4])], batch_first=True)
    tensor([[1, 2, 3],
            [4, 0, 0]])
    """
    sequences = [*sequences] if isinstance(sequences, Iterable) else []
    if not sequences or padding_side not in ("right", "left"):
        raise ArgumentError(f"pad_sequence: {len(sequences)} sequences, padded {padding_side}; want some, 'right' or 'left'")
    if any(s.shape[1:] != sequences[0].shape[1:] for s in sequences):
        shapes = ", ".join(str(s.shape) for s in sequences)
        raise ArgumentError(f"pad_sequence: shapes {shapes}; want (l, ..), l alone different")
    longest, rows, dtype = max(s.shape[0] for s in sequences), [], sequences[0].dtype
    number = number_for(padding_value, dtype)
    with LOCK:
        memories = None if number is None else all_in_memory(sequences)
        if memories is not None:
            values = [memory.read(dtype) for memory in memories]
            return _padded_in_memory(values, longest, dtype, batch_first, number, padding_side)
    for s in [s if s.dtype is dtype else s.to(dtype) for s in sequences]:
        missing = (longest - s.shape[0], *s.shape[1:])
        filler = full(missing, padding_value, dtype=dtype, device=s.device)
        joined = [s, filler] if padding_side == "right" else [filler, s]
        rows.append(call(OPERATIONS["cat"], (joined,)) if missing[0] else s)
    return call(OPERATIONS["stack"], (rows, 0 if batch_first else 1))


def _padded_in_memory(
    values: list[np.ndarray], longest: int, dtype: DType, batch_first: bool, padding_value: float, padding_side: str
) -> Tensor:
    grid = np.full((len(values), longest, *values[0].shape[1:]), padding_value, dtype.numpy)
    for row, each in zip(grid, values, strict=True):
        start = 0 if padding_side == "right" else longest - len(each)
        row[start : start + len(each)] = each
    return from_values(grid if batch_first else grid.swapaxes(0, 1), dtype)


def unpad_sequence(padded_sequences: Tensor, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded tensor, each as long as `lengths` says.

    >>> unpad_sequence(genesis.tensor([[1, 2, 3], [4, 0, 0]]), [3, 1], batch_first=True)
    [tensor([1, 2, 3]), tensor([4])]
    """
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:length] for row, length in zip(rows, _numbers(lengths), strict=True)]


# ---- packing ----
def pack_padded_sequence(input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True) -> PackedSequence:
    """The sequences of a padded tensor (l, n, ..), or (n, l, ..) with `batch_first`, packed.

    `lengths` are numbers or a tensor of them. Raises ValueError for lengths that do not fit, and, with `enforce_sorted`,
    for ones that do not descend.

    >>> packed = pack_padded_sequence(genesis.tensor([[1, 2, 3], [4, 0, 0]]), [3, 1], batch_first=True)
    >>> packed.data, packed.batch_sizes
    (tensor([1, 4, 2, 3]), tensor([2, 1, 1]))
    """
    sizes = np.asarray(_numbers(lengths), np.int64)
    steps = input.transpose(0, 1) if batch_first else input
    if sizes.shape != steps.shape[1:2] or sizes.min() < 1 or sizes.max() > steps.shape[0]:
        raise ArgumentError(
            f"pack_padded_sequence: lengths {sizes.tolist()} for shape {input.shape}; want {steps.shape[1]} of them, from 1 to "
            f"{steps.shape[0]}"
        )
    order = None
    if np.any(np.diff(sizes) > 0):
        if enforce_sorted:
            raise ArgumentError(f"pack_padded_sequence: lengths {sizes.tolist()} do not descend; want enforce_sorted=False")
        order = np.argsort(-sizes, kind="stable")
        sizes = sizes[order]
    elif not enforce_sorted:
        order = np.arange(len(sizes))
    data = Packing(steps[: sizes[0]].clone(), sizes, order)
    batch_sizes = tensor(np.sum(np.arange(sizes[0])[:, None] < sizes, 1))
    if order is None:
        return PackedSequence(data, batch_sizes)
    return PackedSequence(data, batch_sizes, *[tensor(at, device=input.device) for at in (order, np.argsort(order))])


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """The sequences (l_i, ..) packed. Raises as `pad_sequence` and `pack_padded_sequence`.

    >>> pack_sequence([genesis.tensor([1, 2, 3]), genesis.tensor([4])]).data
    tensor([1, 4, 2, 3])
    """
    lengths = [s.shape[0] for s in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """(the sequences padded to the longest, or to `total_length`; their lengths), in their order before packing.

    Raises ValueError for a `total_length` below the longest.

    >>> packed = pack_padded_sequence(genesis.tensor([[4, 0], [1, 2]]), [1, 2], batch_first=True, enforce_sorted=False)
    >>> pad_packed_sequence(packed, batch_first=True)
    (tensor([[4, 0],
            [1, 2]]), tensor([1, 2]))
    """
    steps, sizes = padded(sequence)
    if total_length is not None and total_length < steps.shape[0]:
        raise ValueError(f"pad_packed_sequence: total_length is {total_length}, the longest sequence has {steps.shape[0]}")
    steps = _where_within(steps, sizes, padding_value)
    if total_length is not None and total_length > steps.shape[0]:
        missing = (total_length - steps.shape[0], *steps.shape[1:])
        steps = call(OPERATIONS["cat"], ([steps, full(missing, padding_value, dtype=steps.dtype, device=steps.device)],))
    if sequence.unsorted_indices is not None:
        sizes = sizes[sequence.unsorted_indices.numpy()]
        steps = steps.index_select(1, sequence.unsorted_indices)
    return (steps.transpose(0, 1) if batch_first else steps), tensor(sizes)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed one, in their order before packing.

    >>> unpack_sequence(pack_sequence([genesis.tensor([4]), genesis.tensor([1, 2])], enforce_sorted=False))
    [tensor([4]), tensor([1, 2])]
    """
    steps, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(steps, lengths, batch_first=True)


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes one; None of None.

    >>> invert_permutation(genesis.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    return None if permutation is None else permutation.argsort()


# ---- what recurrent layers are given, and give back ----
def padded(sequence: PackedSequence) -> tuple[Tensor, np.ndarray]:
    """The sequences as a layer takes them, (l, n, ..) from the longest to the shortest, and their lengths."""
    packing = sequence.packing
    if packing is not None:
        steps, order = packing.steps, packing.order
        steps = steps if order is None else steps.index_select(1, tensor(order, device=steps.device))
        return _where_within(steps, packing.sizes, 0), packing.sizes  # what is beyond an end may be NaN
    counts = sequence.batch_sizes.numpy()
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])[:, None] + np.arange(counts[0])
    at = np.where(np.arange(counts[0]) < counts[:, None], starts, 0)  # beyond an end, any element
    rows = sequence.data.index_select(0, tensor(at.reshape(-1), device=sequence.data.device))
    return rows.reshape(*at.shape, *sequence.data.shape[1:]), np.sum(np.arange(counts[0])[:, None] < counts, 1)


def _where_within(steps: Tensor, sizes: np.ndarray, other: float) -> Tensor:
    """Steps (l, n, ..) of sequences of these sizes, with `other` beyond their ends."""
    beyond = tensor(np.arange(steps.shape[0])[:, None] >= sizes, device=steps.device)
    return where(beyond.reshape(*beyond.shape, *[1] * (steps.ndim - 2)), other, steps).to(steps.dtype)


def pack_as(steps: Tensor, sequence: PackedSequence) -> PackedSequence:
    """A layer's padded output (l, n, ..), which nobody else has, packed like its input `sequence`."""
    counts = sequence.batch_sizes.numpy()
    sizes = np.sum(np.arange(counts[0])[:, None] < counts, 1)
    return PackedSequence(Packing(steps, sizes, None), sequence.batch_sizes, sequence.sorted_indices, sequence.unsorted_indices)


def _packed_indices(sizes: np.ndarray, order: np.ndarray | None, count: int) -> np.ndarray:
    """The indices of packed elements in (l, n, ..) with its first two axes merged."""
    columns = np.arange(count) if order is None else order
    grid = np.arange(sizes[0])[:, None] * count + columns
    return grid[np.arange(sizes[0])[:, None] < sizes]


def _numbers(lengths: Any) -> list[int]:
    return [int(n) for n in (lengths.tolist() if isinstance(lengths, Tensor | np.ndarray) else lengths)]
