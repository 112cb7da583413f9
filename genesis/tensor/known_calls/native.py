"""The machine code that records known calls, and the objects that it refers to."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

from genesis.ir.dtypes import DType, default_dtype, int64
from genesis.ir.graph import Node
from genesis.runtime.instructions import are_possible, object_new
from genesis.runtime.kernel_cache import KernelSource, get_or_compile
from genesis.runtime.memory import Buffer
from genesis.runtime.native import METH_FASTCALL, builtin
from genesis.tensor.handle import Tensor, plain_classes
from genesis.tensor.known_calls.call_ir import OBJECTS, known_call_ir
from genesis.tracing.memory import Memory
from genesis.tracing.trace import BUSY, Array, Trace
from genesis.tracing.trie import TrieNode

_SLOTTED: dict[str, type] = {kind.__name__: kind for kind in (Array, Buffer, Memory, Node, Trace, TrieNode)}


def native_record(token: Callable[..., object]) -> Callable[..., Any] | None:
    """`KnownCalls.record` as machine code, which asks `token` for those of other arguments; None if this interpreter's objects
    are laid out otherwise than CPython's.
    """
    if not are_possible():
        return None
    known = (
        Tensor, Array, int, float, bool, str, tuple, DType,
        "_array", "_base", "_requires_grad", "_changes", "_seen", "operands", "static_scalars", "scalar",
        None, True, False, BUSY, (), int64, default_dtype, plain_classes, token,
    )
    assert len(known) == len(OBJECTS)
    objects = array("Q", [*map(id, known), object_new()])
    [address] = get_or_compile([KernelSource("genesis_known_call", _source(), _source, of_program=False)])
    return builtin(b"genesis_known_call", address, METH_FASTCALL, objects.buffer_info()[0], objects, *known)


def _source() -> str:
    return known_call_ir(_SLOTTED)
