"""Nested tensors: what both layouts have in common, and the jagged one, of concatenated sequences of different lengths.

Jagged ones are stored as one sequence: a dense tensor with batch extent 1 and the sum of lengths along the ragged axis.
Operations that do not mix sequences are then the same operation on the same axes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

import numpy as np

from genesis.functions.creation import full
from genesis.functions.methods.table import functions_of
from genesis.ir.annotations import Attributes
from genesis.ir.errors import ArgumentError
from genesis.ir.named_layouts import jagged
from genesis.ir.shapes import normalize_axis
from genesis.ops.registry import OPERATIONS, PRIMITIVES
from genesis.sparse.sparse_tensor import rows_of
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.dispatch import call
from genesis.tensor.from_python import from_data
from genesis.tensor.handle import CallArguments, Tensor

cat, stack = functions_of("cat", "stack")


Rule = Callable[..., Any]
_BY_ELEMENT = {f"genesis.ops.{name}" for name in ("elementwise", "arithmetic", "activation", "special")}  # modules of rows
_ELSEWHERE = {"dropout", "clone", "to_dtype", "stop_gradient", "frexp", "nextafter", "mvlgamma", "fill"}  # rows of others
_OTHERS = {"logsumexp", "softmin", "prelu"}  # rows of theirs with axes of their own


class Ragged:
    """The extent of a ragged axis, different for each sequence. It is equal for tensors with the same sequences."""

    def __init__(self, lengths: tuple[int, ...]) -> None:
        self.lengths = lengths

    def __eq__(self, other: object) -> bool: return isinstance(other, Ragged) and other.lengths == self.lengths
    def __hash__(self) -> int: return hash(self.lengths)
    def __repr__(self) -> str: return "j"


class AnyNested(CompositeTensor):
    """A batch of tensors whose extents differ. Elementwise functions run on all elements at once; others have rules."""

    hint: ClassVar[str] = "to_padded_tensor() and unbind() make some"
    rules: ClassVar[dict[str, Rule]]  # by the names of operations

    is_nested = property(lambda self: True)

    @classmethod
    def rule(cls, *names: str) -> Callable[[Rule], Rule]:
        """Decorator: the rule of these operations for arguments of the class."""

        def note(function: Rule) -> Rule:
            cls.rules.update(dict.fromkeys(names, function))
            return function

        return note

    def dim(self) -> int:
        """The number of axes, the batch among them."""
        return self.ndim

    def contiguous(self, memory_format: object = None) -> Self:
        """The tensor itself."""
        return self

    def derivation(self) -> str:
        """What is printed of its derivation."""
        if self.grad_fn is not None:
            return f", grad_fn=<{type(self.grad_fn).__name__}>"
        return ", requires_grad=True" * self.requires_grad

    def computed(self, name: str, arguments: CallArguments, attributes: Attributes) -> Any:
        rule = self.rules.get(name)
        if rule is not None:
            return rule(*arguments, **attributes)
        if not _is_by_element(name):
            return super().computed(name, arguments, attributes)
        given = [self.beside(name, a) if isinstance(a, Tensor) else a for a in arguments]
        named = {key: self.beside(name, a) if isinstance(a, Tensor) else a for key, a in attributes.items()}
        found = call(OPERATIONS[name], given, named)
        return self.with_elements(found) if isinstance(found, Tensor) else type(found)(*map(self.with_elements, found))

    def beside(self, name: str, other: Tensor) -> Tensor:
        """An operand of an elementwise function for all elements of this one."""
        raise NotImplementedError


def _is_by_element(name: str) -> bool:
    """Whether an operation is elementwise."""
    primitive = PRIMITIVES.get(name)
    if primitive is not None and primitive.kind == "elementwise":
        return True
    own = OPERATIONS[name].define.__module__ in _BY_ELEMENT and name not in _OTHERS
    return own or name in _ELSEWHERE


class NestedTensor(AnyNested):
    """A batch of sequences of different lengths, made by `nested_tensor` and others.

    All other axes have equal extents. Its gradients are nested.
    """

    parts: ClassVar[tuple[str, ...]] = "_whole", "_starts"
    rules: ClassVar[dict[str, Rule]] = {}

    _whole: Tensor  # (1, .., all, ..)
    _starts: Tensor  # (batch + 1,): the start of each sequence along the ragged axis
    _lengths: tuple[int, ...]
    _ragged: int  # the ragged axis

    # ---- what it is ----
    @property
    def shape(self) -> Any:
        """The extents; the ragged axis has a `Ragged` instead of a number."""
        extents: list[Any] = [*self._whole.shape]
        extents[0], extents[self._ragged] = len(self._lengths), Ragged(self._lengths)
        return tuple(extents)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._whole.ndim

    @property
    def layout(self) -> Any:
        """`genesis.nested.jagged`."""
        return jagged

    def numel(self) -> int:
        """The number of elements of all sequences."""
        return self._whole.numel()

    def size(self, dim: int | None = None) -> Any:  # type: ignore[override]
        """The shape, or one extent of it."""
        return self.shape if dim is None else self.shape[normalize_axis("size", dim, self.ndim)]

    def is_contiguous(self, memory_format: object = None) -> bool:
        """Whether the ragged axis has not been transposed."""
        return self._ragged == 1

    def described(self) -> str: return f"a nested one of shape {self.shape}"
    def __len__(self) -> int: return len(self._lengths)
    def __iter__(self) -> Iterator[Tensor]: return iter(self.unbind())

    def __repr__(self) -> str:  # type: ignore[override]
        shown = f"size={self.shape}, offsets={self._starts!r}{self.derivation()}, contiguous={self.is_contiguous()}"
        return f"NestedTensor({shown})"

    __str__ = __repr__

    # ---- others like it ----
    def with_whole(self, whole: Tensor, ragged: int | None = None) -> NestedTensor:
        """Other elements in sequences of the same lengths."""
        return nested(whole, self._starts, self._lengths, self._ragged if ragged is None else ragged)

    def with_elements(self, elements: Tensor) -> NestedTensor:
        return self.with_whole(elements)

    def beside(self, name: str, other: Tensor) -> Tensor:
        """An operand for the whole: a nested one's whole, or a dense one's rows repeated for the sequences."""
        if isinstance(other, NestedTensor):
            if other._lengths != self._lengths or other.ndim - other._ragged != self.ndim - self._ragged:
                raise ArgumentError(f"nested tensors of shapes {self.shape} and {other.shape} do not fit: want equal sequences")
            return other._whole
        ragged = other.ndim - self.ndim + self._ragged
        if ragged >= 0 and other.shape[ragged] != 1:
            raise ArgumentError(f"shape {other.shape} beside {self.described()}; want an extent of 1 instead of the ragged one")
        if other.ndim < self.ndim or other.shape[0] == 1:
            return other
        rows = other.select(self._ragged, 0)[self.row_numbers()]
        return rows.unsqueeze(0).movedim(1, self._ragged)

    def to(self, *targets: Any, **settings: Any) -> Any:
        """The tensor in another dtype or on another device; itself if nothing changes."""
        whole = self._whole.to(*[t._whole if isinstance(t, NestedTensor) else t for t in targets], **settings)
        if whole is self._whole:
            return self
        return nested(whole, self._starts.to(whole.device), self._lengths, self._ragged)

    # ---- sequences ----
    def offsets(self) -> Tensor:
        """(batch + 1,): the start of each sequence among the values, and the end of the last."""
        return self._starts

    def lengths(self) -> None:
        """None: there are no gaps between sequences."""

    def values(self) -> Tensor:
        """The elements of all sequences, end to end: (all, ..)."""
        return self.rows() if self._ragged == 1 else self._whole.squeeze(0)

    def rows(self) -> Tensor:
        """The elements with the ragged axis first, without the batch axis."""
        return self._whole.squeeze(0).movedim(self._ragged - 1, 0)

    def row_numbers(self) -> Tensor:
        """The sequence of each row."""
        return rows_of(self._starts, sum(self._lengths))

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """The sequences."""
        if normalize_axis("unbind", dim, self.ndim) != 0:
            raise ArgumentError(f"unbind: along axis 0 of a nested tensor, got {dim}")
        flat, ends = self._whole.squeeze(0), np.cumsum(self._lengths).tolist()
        return tuple([flat.narrow(self._ragged - 1, end - length, length)
                      for end, length in zip(ends, self._lengths, strict=True)])

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Tensor:
        """A dense tensor, as long as the longest sequence; others are padded with `padding`."""
        count, rows = len(self._lengths), self.rows()
        longest = max(self._lengths, default=0) if output_size is None else output_size[self._ragged]
        sequences = self.row_numbers()
        rows_at = sequences * longest + call(OPERATIONS["arange"], (0, 1, len(rows), self._starts.dtype)) - (
            self._starts[sequences])
        base = full((count * longest, *rows.shape[1:]), padding, dtype=rows.dtype, device=rows.device)
        return base.index_copy(0, rows_at, rows).reshape(count, longest, *rows.shape[1:]).movedim(1, self._ragged)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, int):
            return self.unbind()[index]
        if isinstance(index, NestedTensor):  # a mask
            return joined([part[chosen] for part, chosen in zip(self.unbind(), index.unbind(), strict=True)])
        parts = index if isinstance(index, tuple) else (index,)
        if Ellipsis in parts:
            at = parts.index(Ellipsis)
            parts = (*parts[:at], *[slice(None)] * (self.ndim - len(parts) + 1), *parts[at + 1 :])
        if any(part != slice(None) for part in (parts[0], *parts[self._ragged : self._ragged + 1])):
            raise ArgumentError(f"index: {index} of {self.described()}; want all of the batch and the ragged axis, or an int")
        kept = sum(not isinstance(part, int) for part in parts[: self._ragged])
        return self.with_whole(self._whole[parts], kept if len(parts) > self._ragged else None)


def nested(whole: Tensor, starts: Tensor, lengths: tuple[int, ...], ragged: int = 1) -> NestedTensor:
    """The nested tensor of these matching parts."""
    result = object.__new__(NestedTensor)
    result._whole, result._starts, result._lengths, result._ragged = whole, starts, lengths, ragged
    return result


def joined(sequences: list[Tensor], device: Any = None) -> NestedTensor:
    """Sequences (length, ..) end to end; gradients flow to them."""
    shapes = [tuple(x.shape) for x in sequences]
    if not sequences or any(not shape or shape[1:] != shapes[0][1:] for shape in shapes):
        raise ArgumentError(f"nested_tensor: sequences of shapes {shapes}; want one at least, equal but for their first extent")
    lengths = tuple([shape[0] for shape in shapes])
    whole = cat(sequences).unsqueeze(0)
    starts = from_data(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), device=device or whole.device)
    return nested(whole if device is None else whole.to(device), starts, lengths)
