"""Embedding tables: rows by index, bags of rows, and one-hot rows.

With `sparse`, the selected rows are a leaf that represents the table: its gradient is the table's sparse gradient.
"""

from __future__ import annotations

from genesis.functions.indexing import is_few
from genesis.functions.methods.conversion import values_of
from genesis.functions.methods.table import functions_of
from genesis.functions.overrides import overridable
from genesis.functions.ranges import arange
from genesis.ir.dtypes import int64
from genesis.ir.errors import ArgumentError, FormError
from genesis.ops.registry import OPERATIONS
from genesis.sparse.sparse_tensor import SparseTensor, sparse as sparse_tensor
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import write
from genesis.tracing.recording_hooks import refuse
from genesis.tracing.state import grad_mode, thread_state

(cat,) = functions_of("cat")


@overridable
def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:
    """The rows of `weight` (entries, width) at the positions `input` (any shape).

    The row `padding_idx` gets no gradient. Selected rows whose norm, of order `norm_type`, exceeds `max_norm` are first scaled
    down to it, in `weight` itself. With `scale_grad_by_freq`, a row's gradient is divided by its number of occurrences. With
    `sparse`, the gradient of a leaf `weight` is a sparse tensor with one row per index, possibly repeated;
    `optim.SparseAdam`, `SGD` and `Adagrad` update only those rows. Raises ValueError for a `weight` of another rank, a
    padding_idx out of range, and `scale_grad_by_freq` with `sparse`; when evaluated, IndexError for an index out of range.

    >>> embedding(genesis.tensor([1, 0]), genesis.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[3., 4.],
            [1., 2.]])
    """
    if max_norm is not None:
        scaled_down(input, weight, max_norm, norm_type)
    padding = None if padding_idx is None else _padding_index("embedding", padding_idx, weight.shape[0])
    if sparse and _is_table(weight):
        if scale_grad_by_freq:
            raise ArgumentError("embedding: scale_grad_by_freq is not for sparse gradients")
        return _rows(input, weight, padding).reshape(*input.shape, weight.shape[1])
    return call(OPERATIONS["embedding"], (input, weight, padding, scale_grad_by_freq))


def _padding_index(name: str, padding_idx: int, entries: int) -> int:
    """`padding_idx` as a nonnegative index."""
    if not -entries <= padding_idx < entries:
        raise FormError(f"{name}: padding_idx {padding_idx} is outside a table of {entries} entries")
    return padding_idx % entries


def scaled_down(input: Tensor, weight: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows of `weight` at `input` down to the norm `max_norm`, in place."""
    with grad_mode(False):
        sizes = call(OPERATIONS["vector_norm"], (weight, norm_type, 1, True))
        asked = weight.new_zeros(weight.shape[0]).index_fill(0, input.reshape(-1), 1.0).unsqueeze(1) * (sizes > max_norm)
        write(weight, call(OPERATIONS["where"], (asked != 0, weight * (max_norm / (sizes + 1e-7)), weight)))


@overridable
def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False, padding_idx: int | None = None,
) -> Tensor:
    """The sums, means or maxima of bags of rows of `weight` (entries, width): (bags, width).

    Args:
        input: indices, one bag per row (bags, n), or all in one axis.
        offsets: the start of each bag in a 1-d `input`; the first is 0.
        mode: "sum", "mean" or "max". An empty bag gives zeros.
        per_sample_weights: factors of the rows, of the shape of `input`, with "sum".
        include_last_offset: the last of the `offsets` is the end.
        padding_idx: indices of this value are ignored.

    `max_norm`, `norm_type`, `scale_grad_by_freq` and `sparse` as in `embedding`. Raises ValueError for other shapes and modes,
    and for `scale_grad_by_freq` or `sparse` with "max"; when evaluated, IndexError for indices or offsets out of range.

    >>> table = genesis.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> embedding_bag(genesis.tensor([0, 1, 1]), table, genesis.tensor([0, 2]), mode="sum")
    tensor([[4., 6.],
            [3., 4.]])
    """
    if max_norm is not None:
        scaled_down(input, weight, max_norm, norm_type)
    if sparse and (mode == "max" or (scale_grad_by_freq and _is_table(weight))):
        raise ArgumentError("embedding_bag: mode 'max' and scale_grad_by_freq are not for sparse gradients")
    if sparse and _is_table(weight):
        padding = None if padding_idx is None else _padding_index("embedding_bag", padding_idx, weight.shape[0])
        input, weight, padding_idx = _table_of_rows(input, weight, padding)
    arguments = (input, weight, offsets, per_sample_weights, scale_grad_by_freq, mode, include_last_offset, padding_idx)
    return call(OPERATIONS["embedding_bag"], arguments)


# ---- sparse gradients ----
def _is_table(weight: Tensor) -> bool:
    """Whether the gradient of `weight` can be sparse: only a leaf's; a result's flows on and must be dense."""
    return weight.requires_grad and weight.is_leaf and thread_state.grad_enabled and not thread_state.deferred


def _rows(input: Tensor, weight: Tensor, padding: int | None) -> Tensor:
    """The rows of `weight` at all indices, (n, width), as a leaf that represents it, except for the row `padding`."""
    refuse("a gradient is to be sparse")
    positions = input.reshape(-1).to(int64).clone()  # later writes to the indices do not move the gradient
    with grad_mode(False):
        rows: Tensor = call(OPERATIONS["embedding"], (positions, weight))

    def gradient_of(gradient: Tensor) -> SparseTensor:
        at = positions
        if padding is not None:
            kept = (positions != padding).nonzero().reshape(-1)
            at, gradient = at[kept], gradient[kept]
        return sparse_tensor(at.unsqueeze(0), gradient, (weight.shape[0], *gradient.shape[1:]))

    rows.requires_grad = True
    rows._stands_for = weight, gradient_of
    return rows


def _table_of_rows(input: Tensor, weight: Tensor, padding: int | None) -> tuple[Tensor, Tensor, int | None]:
    """(a table of the selected rows, their indices in it, the index of a zero row for `padding`)."""
    rows = _rows(input, weight, padding)
    positions = arange(len(rows), device=rows.device).reshape(input.shape)
    if padding is None:
        return positions, rows, None
    positions = call(OPERATIONS["where"], (input == padding, len(rows), positions))
    return positions, cat([rows, rows.new_zeros(1, rows.shape[1])]), len(rows)


# ---- one-hot ----
@overridable
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """A row of `num_classes` for each element of an integer `tensor` (..), int64 (.., num_classes): 1 there, 0 elsewhere.

    With -1, the number of classes is the greatest element plus one, which is read. Raises TypeError for other dtypes,
    ValueError for another negative `num_classes` or an empty `tensor` with -1, and, when evaluated, IndexError for an element
    out of range.

    >>> one_hot(genesis.tensor([2, 0]))
    tensor([[0, 0, 1],
            [1, 0, 0]])
    """
    if num_classes < -1 or (num_classes == -1 and not tensor.numel()):
        raise ArgumentError(f"one_hot: num_classes is {num_classes} for shape {tensor.shape}; want the number of classes")
    if num_classes == -1:
        greatest = values_of(tensor).max() if is_few(tensor) else tensor.max().item()
        num_classes = int(greatest) + 1
    return call(OPERATIONS["one_hot"], (tensor, num_classes))
