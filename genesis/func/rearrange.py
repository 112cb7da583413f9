"""`rearrange`: name, split, merge and move axes by a pattern (A. Rogozhnikov, "Einops", 2022)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from genesis.functions.methods.table import functions_of
from genesis.ir.shapes import numel
from genesis.tensor.handle import Tensor

_stack = functions_of("stack")[0]
Group = list[str]  # the names of one axis's factors; "..." means any number of axes
BARE = "... outside of brackets"  # "..." as separate axes


def rearrange(tensor: Tensor | Sequence[Tensor], pattern: str, **axes_lengths: int) -> Tensor:
    """The tensor with its axes as `pattern` says: "b (h w) c -> b c h w". In each bracket, all extents but one must be given.

    A list of tensors is stacked first, along a new first axis. "..." means any axes, 1 one of extent 1. Raises
    ValueError for a pattern that does not match.

    >>> rearrange(genesis.zeros(2, 12, 5), "b (h w) c -> b c h w", h=3).shape
    (2, 5, 3, 4)
    """
    x = tensor if isinstance(tensor, Tensor) else _stack(list(tensor))
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError(f"rearrange: pattern {pattern!r}; want one '->'")
    left, right = (_groups(side, pattern) for side in sides)
    left, right = (_with_dots(side, left, x.ndim, pattern) for side in (left, right))
    names = [name for group in left for name in group]
    wanted = [name for group in right for name in group]
    if sorted(set(names)) != sorted(names) or sorted(names) != sorted(wanted):
        raise ValueError(f"rearrange: pattern {pattern!r} must name each axis once on both sides")
    if len(left) != x.ndim:
        raise ValueError(f"rearrange: pattern {pattern!r} has {len(left)} axes on the left for shape {x.shape}")
    extents: dict[str, int] = {}
    for group, extent in zip(left, x.shape, strict=True):
        extents |= _extents(group, extent, axes_lengths, pattern)
    parts = x.reshape([extents[name] for name in names])
    moved = parts.permute([names.index(name) for name in wanted])
    return moved.reshape([numel(tuple(extents[name] for name in group)) for group in right])


def _groups(side: str, pattern: str) -> list[Group]:
    groups = []
    for bracket, name in re.findall(r"\(([^()]*)\)|([^\s()]+)", side):
        parts = bracket.split() if name == "" else [BARE if name == "..." else name]
        groups.append([part for part in parts if part != "1"])
    for name in (n for group in groups for n in group):
        if not (name.isidentifier() or name in ("...", BARE)):
            raise ValueError(f"rearrange: pattern {pattern!r} has {name!r}; want names, 1, brackets and '...'")
    return groups


def _with_dots(side: list[Group], left: list[Group], rank: int, pattern: str) -> list[Group]:
    """The groups with "..." written out as names of axes."""
    count = rank - len(left) + 1
    dots = [f"...{n}" for n in range(count if [BARE] in left else 0)]
    made: list[Group] = []
    for group in side:
        if group == [BARE]:
            made += [[name] for name in dots]
        else:
            made.append([name for part in group for name in (dots if part == "..." else [part])])
    return made


def _extents(group: Group, extent: int, given: dict[str, int], pattern: str) -> dict[str, int]:
    """The extents of one axis's factors; one of them may be inferred."""
    known = {name: given[name] for name in group if name in given}
    unknown = [name for name in group if name not in given]
    product = numel(tuple(known.values()))
    if len(unknown) > 1 or (unknown and (not product or extent % product)) or (not unknown and product != extent):
        raise ValueError(f"rearrange: an axis of extent {extent} is no ({' '.join(group)}) with {known} in {pattern!r}")
    return known | {name: extent // product for name in unknown}
