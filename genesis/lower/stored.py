"""The disk cache of lowered graphs.

A file is named by a digest of everything that lowering depends on: the nodes, the outputs wanted, the target, the source
of the passes. As with kernels, any problem with a file is a miss. It is a pickle: as what it lies beside is machine code, the
directory is trusted (see `private_directory`).
"""

from __future__ import annotations

import contextlib
import functools
import pickle
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from genesis.ir.dtypes import DType, get_default_dtype
from genesis.ir.graph import Node
from genesis.lower import Lowered, lower
from genesis.lower.target import Target
from genesis.ops import PRIMITIVES
from genesis.runtime.content_store import ContentStore
from genesis.runtime.counters import count, counts
from genesis.runtime.digest import by_value, digest
from genesis.runtime.loaded_source import PACKAGE, digest_of
from genesis.runtime.private_directory import cache_directory
from genesis.runtime.uninterrupted import uninterrupted

LEAST_NODES = 64  # a smaller graph is lowered in a millisecond or two
AT_ONCE = 16  # plans of a process; later ones, which may be of ever new sizes, are stored when they run again
SIZE_LIMIT = 128 << 20  # bytes on disk; a training step takes 100 to 150 per node

_ROWS = dict(PRIMITIVES)  # the built-in ones, which the digest covers


@functools.cache
def makers() -> list[Path]:
    """The files of everything that lowers."""
    return [path for floor in ("ir", "ops", "lower") for path in PACKAGE.glob(f"{floor}/**/*.py")]


@functools.cache
def passes() -> str:
    """A digest of the source of everything that lowers."""
    return digest_of(makers())


_cache = ContentStore(lambda: cache_directory("lowered"), SIZE_LIMIT, makers)


def read_or_lower(
    nodes: Sequence[Node], outputs: Sequence[int], target: Target, scalars: Sequence[DType] = (), saved: Sequence[int] = (),
    awaited: Sequence[int] = (),
) -> Lowered:
    """The result of `lower` for the same arguments, from this process or an earlier one."""
    asked = (nodes, outputs, target, scalars, saved, awaited)
    if len(nodes) < LEAST_NODES or (name := _name(*asked)) is None:
        return lower(*asked)
    if (found := _read(_cache.find(name), target)) is not None:
        return found
    if counts["plans_built"] >= AT_ONCE:
        return lower(*asked)
    with _cache.making(name) as content:  # of concurrent processes, one lowers it
        if (found := _read(content, target)) is not None:
            return found
        lowered = lower(*asked)
        _keep(name, lowered)
    return lowered


def store(lowered: Lowered, *asked: Any) -> None:
    """Store the result of `lower(*asked)`, which runs again, for later processes."""
    if len(asked[0]) >= LEAST_NODES and (name := _name(*asked)) is not None and _cache.find(name) is None:
        _keep(name, lowered)


def _keep(name: str, lowered: Lowered) -> None:
    _cache.keep(name, pickle.dumps(lowered._replace(target=Target(1)), pickle.HIGHEST_PROTOCOL))  # the target is the reader's


def _read(content: bytes | None, target: Target) -> Lowered | None:
    """The graph in a file; None if there is none, or it is damaged."""
    found = None if content is None else uninterrupted(_unpickled, content)
    count("plans_read", found is not None)
    return None if found is None else found._replace(target=target)


def _unpickled(content: bytes) -> Lowered | None:
    with contextlib.suppress(Exception):  # whatever else the bytes are
        found = pickle.loads(content)
        return found if type(found) is Lowered else None
    return None


def is_built_in(nodes: Sequence[Node]) -> bool:
    """Whether a graph has no user's own operation."""
    return all([PRIMITIVES[op] is _ROWS.get(op) for op in {node.op for node in nodes}])


def _name(
    nodes: Sequence[Node], outputs: Sequence[int], target: Target, scalars: Sequence[DType], saved: Sequence[int],
    awaited: Sequence[int] = (),
) -> str | None:
    """The digest of everything that lowering depends on; None if that is not only numbers, names and lists of them."""
    if not is_built_in(nodes):
        return None
    surroundings = sys.version, np.__version__, passes(), get_default_dtype().name
    asked = [*outputs], repr(target), [dtype.name for dtype in scalars], [*saved], [*awaited]
    facts = [(node.op, node.inputs, node.attrs, node.shape, node.dtype.name, node.differentiable) for node in nodes]
    try:
        return digest(by_value((surroundings, asked, facts))).hexdigest()
    except ValueError:  # an attribute that is no number or name: no key
        return None
