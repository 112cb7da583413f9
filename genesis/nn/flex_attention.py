"""Attention with user-defined functions for scores and masks: `score_mod(score, b, h, q_idx, kv_idx)` and
`mask_mod(b, h, q_idx, kv_idx)`.

They are called once, with indices that broadcast to (n, heads, l, s), and are fused into kernels like any operation.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from math import sqrt
from typing import Any, NamedTuple

from genesis.functions.creation import zeros
from genesis.functions.ranges import arange
from genesis.functions.selection import where
from genesis.ir.annotations import Options
from genesis.ir.dtypes import bool_, int32
from genesis.nn.multi_head import scaled_dot_product_attention
from genesis.ops.registry import OPERATIONS
from genesis.runtime.devices import DeviceLike
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask", "create_mask",
    "flex_attention", "noop_mask", "or_masks",
]
__dir__ = __all__.copy

MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
FlexKernelOptions = dict[str, Any]  # tiling of PyTorch's kernels; no effect
BLOCK = 128
INFINITY = float("inf")


class AuxRequest(NamedTuple):
    """The values that `flex_attention` returns besides its output: the log-sum-exp of scores, and the maximal scores."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The values that an `AuxRequest` requested, (n, heads, l) each; others are None."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


# ---- masks ----
def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The `mask_mod` that hides nothing.

    >>> noop_mask(*[genesis.tensor(0)] * 4)
    tensor(True)
    """
    return batch.new_ones((), dtype=bool_)


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """The intersection of several `mask_mod`s.

    >>> near = and_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: q - k < 2)
    >>> create_mask(near, None, None, 3, 3)[0, 0].int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [0, 1, 1]], dtype=genesis.int32)
    """
    return _joined("and_masks", mask_mods, True)


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """The union of several `mask_mod`s.

    >>> create_mask(or_masks(lambda b, h, q, k: k == 0, lambda b, h, q, k: k == q), None, None, 2, 3)[0, 0].int()
    tensor([[1, 0, 0],
            [1, 1, 0]], dtype=genesis.int32)
    """
    return _joined("or_masks", mask_mods, False)


def _joined(name: str, mask_mods: tuple[MaskMod, ...], all_of_them: bool) -> MaskMod:
    if not all(callable(mod) for mod in mask_mods):
        raise RuntimeError(f"{name}: wants functions, got {', '.join(type(mod).__name__ for mod in mask_mods)}")

    def joined(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_full((), all_of_them, dtype=bool_)
        for mod in mask_mods:
            shown = mod(b, h, q_idx, kv_idx)
            result = result & shown if all_of_them else result | shown
        return result

    return joined


def _indices(n: int, heads: int, queries: int, keys: int, device: DeviceLike) -> tuple[Tensor, ...]:
    """The indices along each axis of (n, heads, queries, keys), shaped so that they broadcast."""
    extents = n, heads, queries, keys
    return tuple(
        arange(extent, device=device, dtype=int32).reshape(*[extent if axis == other else 1 for other in range(4)])
        for axis, extent in enumerate(extents))


def create_mask(
    mod_fn: MaskMod | ScoreMod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: DeviceLike = None
) -> Tensor:
    """The mask (B, H, Q_LEN, KV_LEN) of a `mask_mod`, or of a `score_mod`: where scores are not minus infinity.

    >>> create_mask(lambda b, h, q_idx, kv_idx: q_idx >= kv_idx, None, None, 2, 2)
    tensor([[[[ True, False],
              [ True,  True]]]])
    """
    shape = B or 1, H or 1, Q_LEN, KV_LEN
    at = _indices(*shape, device)
    if sum(p.default is p.empty for p in signature(mod_fn).parameters.values()) == 5:
        scores: Tensor = mod_fn(zeros(shape, device=device), *at)  # type: ignore[call-arg]
        return (scores != -INFINITY).expand(shape)
    shown: Tensor = mod_fn(*at)  # type: ignore[call-arg]
    return shown.to(bool_).expand(shape)


def _blocks(mask: Tensor, size: tuple[int, int], separate_full_blocks: bool) -> tuple[Tensor, Tensor | None]:
    """(partial blocks, full blocks), each (n, heads, rows, columns); without separation (blocks that show anything, None)."""
    *lead, queries, keys = mask.shape
    rows, columns = -(-queries // size[0]), -(-keys // size[1])
    padded = call(OPERATIONS["pad"], (mask.to(int32), (0, columns * size[1] - keys, 0, rows * size[0] - queries)))
    shown = padded.reshape(*lead, rows, size[0], columns, size[1]).sum((-3, -1))
    full = shown == size[0] * size[1]
    some = shown > 0
    return (some & ~full, full) if separate_full_blocks else (some, None)


def _ordered(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """(the number of blocks per row, their columns in order followed by the other columns)."""
    numbers = blocks.to(int32)
    return numbers.sum(-1).to(int32), numbers.argsort(-1, True, True).to(int32)


def _dense(count: Tensor, columns: Tensor, width: int) -> Tensor:
    """The inverse of `_ordered`: ones at the blocks, int32."""
    valid = arange(columns.shape[-1], device=columns.device) < count.unsqueeze(-1)
    chosen = columns.unsqueeze(-1) == arange(width, device=columns.device)
    return (chosen & valid.unsqueeze(-1)).any(-2).to(int32)


class BlockMask:
    """Which blocks of queries attend to which blocks of keys, and the mask function for single pairs.

    `create_block_mask` and `from_kv_blocks` make it. Attributes are PyTorch's: `kv_num_blocks` (n, heads, rows) counts the
    partial blocks, `kv_indices` (n, heads, rows, columns) has their columns first, `full_kv_num_blocks` and
    `full_kv_indices` are those of full blocks, or None.

    >>> mask = create_block_mask(lambda b, h, q_idx, kv_idx: q_idx >= kv_idx, None, None, 256, 256)
    >>> mask.shape, mask.kv_num_blocks.tolist(), mask.full_kv_num_blocks.tolist(), mask.sparsity()
    ((1, 1, 256, 256), [[[1, 1]]], [[[0, 1]]], 25.0)
    """

    def __init__(
        self, seq_lengths: tuple[int, int], kv_num_blocks: Tensor, kv_indices: Tensor, full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None, BLOCK_SIZE: tuple[int, int] = (BLOCK, BLOCK), mask_mod: MaskMod = noop_mask,
        implied: bool = False,
    ) -> None:
        if kv_indices.ndim < 2:
            raise RuntimeError(f"BlockMask: kv_indices have shape {kv_indices.shape}; want (.., rows, columns)")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("BlockMask: wants both of full_kv_num_blocks and full_kv_indices, or none")
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod
        self._implied = implied  # whether mask_mod alone implies the blocks

    @classmethod
    def from_kv_blocks(
        cls, kv_num_blocks: Tensor, kv_indices: Tensor, full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None, BLOCK_SIZE: int | tuple[int, int] = BLOCK, mask_mod: MaskMod | None = None,
        seq_lengths: tuple[int, int] | None = None, compute_q_blocks: bool = True,
    ) -> BlockMask:
        """The mask from given blocks: partial ones use `mask_mod`, full ones show everything, others nothing."""
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        lengths = seq_lengths or (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])
        return cls(lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, size, mask_mod or noop_mask)

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, heads, queries, keys)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """The number of pairs of queries and keys."""
        n, heads, queries, keys = self.shape
        return n * heads * queries * keys

    def to_dense(self) -> Tensor:
        """The blocks that show something, (n, heads, rows, columns): ones, as int32."""
        width = self.kv_indices.shape[-1]
        blocks = _dense(self.kv_num_blocks, self.kv_indices, width)
        if self.full_kv_num_blocks is None or self.full_kv_indices is None:
            return blocks
        return blocks | _dense(self.full_kv_num_blocks, self.full_kv_indices, width)

    def sparsity(self) -> float:
        """The percentage of pairs in empty blocks."""
        shown = int(self.to_dense().sum().item()) * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1]
        return 100 * (1 - shown / self.numel())

    def to(self, device: DeviceLike) -> BlockMask:
        """The mask, with its tensors on another device."""
        tables = (self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices)
        moved: list[Any] = [None if t is None else t.to(device) for t in tables]
        return self._like(self.seq_lengths, moved, self.mask_mod, self._implied)

    def _like(self, lengths: tuple[int, int], tables: list[Any], mask_mod: MaskMod, implied: bool) -> BlockMask:
        count, columns, full_count, full_columns = tables
        return BlockMask(lengths, count, columns, full_count, full_columns, self.BLOCK_SIZE, mask_mod, implied)

    def shown(self, at: tuple[Tensor, ...]) -> Tensor:
        """The mask at the indices `at` along each axis: bools that broadcast to (n, heads, l, s)."""
        own = self.mask_mod(*at)
        if self._implied:
            return own
        n, heads, queries, keys = at
        lead = [index % extent for index, extent in zip((n, heads), self.kv_indices.shape[:2], strict=True)]
        block = (*lead, queries // self.BLOCK_SIZE[0], keys // self.BLOCK_SIZE[1])
        width = self.kv_indices.shape[-1]
        own = own & (_dense(self.kv_num_blocks, self.kv_indices, width)[block] != 0)
        if self.full_kv_num_blocks is None or self.full_kv_indices is None:
            return own
        return own | (_dense(self.full_kv_num_blocks, self.full_kv_indices, width)[block] != 0)

    def __getitem__(self, index: Any) -> BlockMask:
        """The blocks of some examples, heads and rows. The function is dropped: it takes indices into the whole."""
        index = index if isinstance(index, tuple) else (index,)
        chosen = tuple(slice(i, i + 1 or None) if isinstance(i, int) else i for i in index)
        tables = (self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices)
        parts: list[Any] = [None if t is None else t[chosen] for t in tables]
        return self._like(self.seq_lengths, parts, _of_a_part, False)

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The mask of the first queries and keys."""
        rows, columns = -(-new_q_len // self.BLOCK_SIZE[0]), -(-new_kv_len // self.BLOCK_SIZE[1])
        tables: list[Any] = []
        for count, at in ((self.kv_num_blocks, self.kv_indices), (self.full_kv_num_blocks, self.full_kv_indices)):
            blocks = None if count is None or at is None else _dense(count, at, at.shape[-1])[..., :rows, :columns]
            tables += (None, None) if blocks is None else _ordered(blocks)
        return self._like((new_q_len, new_kv_len), tables, self.mask_mod, self._implied)

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def _of_a_part(*at: Tensor) -> Tensor:
    raise RuntimeError("BlockMask: a part of a mask has no mask_mod; want one that is set to its mask_mod")


def create_block_mask(
    mask_mod: MaskMod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: DeviceLike = None,
    BLOCK_SIZE: int | tuple[int, int] = BLOCK, _compile: bool = False, separate_full_blocks: bool = True,
) -> BlockMask:
    """The block mask of a mask function of examples, heads, queries and keys.

    Args:
        mask_mod: maps four int32 tensors that broadcast to (B, H, Q_LEN, KV_LEN) to bools.
        B, H: the number of examples and heads; None if the mask does not depend on them.
        BLOCK_SIZE: queries and keys per block. Blocks only describe the mask; kernels choose their own tiles.

    >>> create_block_mask(lambda b, h, q_idx, kv_idx: q_idx >= kv_idx, None, None, 256, 256)
    BlockMask(shape=(1, 1, 256, 256), sparsity=25.00%)
    """
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    some, full = _blocks(create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device), size, separate_full_blocks)
    count, columns = _ordered(some)
    full_count, full_columns = (None, None) if full is None else _ordered(full)
    return BlockMask((Q_LEN, KV_LEN), count, columns, full_count, full_columns, size, mask_mod, True)


# ---- attention ----
def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, score_mod: ScoreMod | None = None, block_mask: BlockMask | None = None,
    scale: float | None = None, enable_gqa: bool = False, return_lse: bool = False, kernel_options: Options | None = None, *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Attention whose scores, query @ key.T * scale, are changed by `score_mod` and masked by `block_mask`.

    Args:
        query: (n, heads, l, e).
        key, value: (n, heads, s, e) and (n, heads, s, v); with `enable_gqa`, fewer heads, each shared by several of the
        query's.
        score_mod: maps the scores and four int32 tensors, which broadcast to their shape, to new scores.
        block_mask: the mask, for these l and s. A query that sees no key gets zeros.
        scale: 1 / sqrt(e) if None.
        return_aux: return (output, AuxOutput) with what it requests; `return_lse` returns (output, lse).
        kernel_options: of no effect.

    Raises ValueError for mismatched shapes, NotImplementedError for other ranks.

    >>> q = genesis.ones(1, 1, 3, 2)
    >>> def later(score, b, h, q_idx, kv_idx):
    ...     return genesis.where(q_idx >= kv_idx, score, -float("inf"))
    >>> flex_attention(q, q, genesis.tensor([[[[0.0], [1.0], [2.0]]]]), score_mod=later).flatten().tolist()
    [0.0, 0.5, 1.0]
    """
    _fit(query, key, value, block_mask, enable_gqa)
    if return_lse and return_aux is not None:
        raise ValueError("flex_attention: wants return_aux, or return_lse, not both")
    n, heads, queries, _ = query.shape
    at = _indices(max(n, key.shape[0]), heads, queries, key.shape[2], query.device)
    shown = None if block_mask is None else block_mask.shown(at)
    if score_mod is None and not return_lse and return_aux is None:
        mask = None if shown is None else shown.expand(at[0].shape[0], heads, queries, key.shape[2])
        return scaled_dot_product_attention(query, key, value, mask, scale=scale, enable_gqa=enable_gqa)
    if heads != key.shape[1]:
        key, value = (x.repeat_interleave(heads // x.shape[1], 1) for x in (key, value))
    scores = (query @ key.transpose(-2, -1)) * (1 / sqrt(query.shape[-1]) if scale is None else scale)
    scores = scores if score_mod is None else score_mod(scores, *at)
    scores = scores if shown is None else where(shown, scores, -INFINITY)
    greatest = scores.amax(-1, keepdim=True)
    seen = greatest != -INFINITY
    weights = call(OPERATIONS["softmax"], (where(seen, scores, 0.0), -1))
    output = where(seen, weights, 0.0).to(value.dtype) @ value
    if not (return_lse or return_aux):
        return output
    lse = call(OPERATIONS["logsumexp"], (where(seen, scores, 0.0), -1))
    lse = where(seen.squeeze(-1), lse, -INFINITY)
    if return_aux is None:
        return output, lse
    return output, AuxOutput(lse if return_aux.lse else None, greatest.squeeze(-1) if return_aux.max_scores else None)


def _fit(query: Tensor, key: Tensor, value: Tensor, block_mask: BlockMask | None, enable_gqa: bool) -> None:
    shapes = f"query {query.shape}, key {key.shape}, value {value.shape}"
    if not query.ndim == key.ndim == value.ndim == 4:
        raise NotImplementedError(f"flex_attention: {shapes}; want (n, heads, l, e) of each")
    if query.shape[-1] != key.shape[-1] or key.shape[:3] != value.shape[:3]:
        raise ValueError(f"flex_attention: {shapes}; want as many features in query and key, as many keys as values")
    if query.shape[1] != key.shape[1] and not (enable_gqa and query.shape[1] % key.shape[1] == 0):
        raise ValueError(f"flex_attention: {shapes}; want as many heads, or with enable_gqa a multiple in the query")
    if query.shape[0] != key.shape[0] and block_mask is None:
        raise ValueError(f"flex_attention: {shapes}; want as many examples, or a block_mask")
    if block_mask is not None and block_mask.seq_lengths != (query.shape[2], key.shape[2]):
        raise ValueError(f"flex_attention: block_mask is for {block_mask.seq_lengths} queries and keys, got {shapes}")


NOT_REPLAYABLE = ("create_block_mask",)
