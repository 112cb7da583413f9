"""The machine code that records known calls and looks at their values, and the objects that it refers to."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.execution.flush import FLUSH_HOOKS
from genesis.ir.dtypes import DType, bool_, default_dtype, float32, float64, int32, int64, uint8
from genesis.ir.graph import Node
from genesis.ops.layout import contiguous_layout
from genesis.ops.registry import Operation
from genesis.runtime.builtin_function import METH_FASTCALL, builtin
from genesis.runtime.devices import CPU
from genesis.runtime.instructions import are_possible, object_new
from genesis.runtime.kernel_cache import compiled
from genesis.runtime.memory import Buffer
from genesis.tensor.handle import Storage, Tensor, plain_classes, spreading
from genesis.tensor.known_calls.call_ir import module_ir
from genesis.tracing.memory import Memory
from genesis.tracing.source_line import inside
from genesis.tracing.state import begun, open_trace, thread_state
from genesis.tracing.trace import BUSY, LOCK, Array, Change, Trace, critical
from genesis.tracing.trie import TrieNode, roots

_SLOTTED: dict[str, type] = {
    kind.__name__: kind for kind in (Array, Buffer, DType, Memory, Node, Operation, Trace, TrieNode, type(critical))}
_ATTRIBUTES = (
    "_array", "_base", "_requires_grad", "_changes", "_seen", "_layout", "_storage", "_detached", "_versions", "_element_map",
    "_keeps_derivation", "_retains_grad", "_is_inference", "deferred", "__dict__", "trace", "traces", "weight", "eager",
    "multi_device", "grad_enabled", "recorder", "scope", "autocast", "co_filename",
)
_OBJECTS: dict[str, object] = {
    "tensor.class": Tensor, "array.class": Array, "memory.class": Memory, "storage.class": Storage, "change.class": Change,
    "trace.class": Trace, "dtype.class": DType, "int.class": int,
    "float.class": float, "bool.class": bool, "str.class": str, "tuple.class": tuple, "list.class": list, "dict.class": dict,
    "ndarray.class": np.ndarray, "ellipsis": ...,
    **{f"{name.strip('_')}.name": name for name in (*_ATTRIBUTES, "scalar", "tensors", "cpu", "draw")},
    "none": None, "true": True, "false": False, "zero": 0, "number.one": 1, "minus.one": -1, "nothing": (),
    "busy": BUSY, "cpu.device": CPU, "contiguous.layout": contiguous_layout,
    "layout.errors": (ValueError, TypeError, IndexError), "boolean": bool_,
    "float32": float32, "float64": float64, "int32": int32, "int64": int64,
    "looked.at": (bool_, float32, float64, int32, int64, uint8), "flush.hooks": FLUSH_HOOKS,
    "default.dtype": default_dtype, "plain.classes": plain_classes, "spreading": spreading, "inside.files": inside,
    "roots": roots, "begun": begun, "critical": critical, "prototype": Trace(), "thread.state": thread_state,
    "acquire": LOCK.acquire, "release": LOCK.release, "open.trace": open_trace,
    "get.frame": sys._getframe,
}
_IN_PYTHON = {  # functions that machine code may go on with
    "genesis_call": ("call.by.python", "continue.call", "token", "flush.long", "refuse.elements", "by.parts", "not.dense"),
    "genesis_look": ("look.by.python",),
    "genesis_view": ("view.by.python", "placed.remembered"),
    "genesis_write": ("write.by.python", "index.for", "number.for", "run.quietly"),
}


def native(symbol: str, *in_python: Callable[..., Any]) -> Callable[..., Any] | None:
    """`KnownCalls.call` as machine code; None if this interpreter's objects are laid out otherwise than CPython's."""
    if not are_possible():
        return None
    known = [*_OBJECTS.values(), *in_python]
    objects = array("Q", [*map(id, known), object_new()])
    address = compiled(symbol, module_ir(symbol, _SLOTTED, (*_OBJECTS, *_IN_PYTHON[symbol])))
    return builtin(symbol.encode(), address, METH_FASTCALL, objects.buffer_info()[0], objects, *known)
