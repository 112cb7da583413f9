"""NCCL, loaded by ctypes: collectives and messages of tensors on GPUs, as calls on a separate stream.

Communicators do not block: a call that does not complete at once returns `IN_PROGRESS`, and nothing else may be called until
`CommGetAsyncError` reports that it has. So no wait for other ranks exceeds the group's timeout.

NCCL requires a call to be captured on all ranks or on none, and graphs captured together to be launched together. Ranks agree
on this before each run, because each has graphs for its own addresses: see `communicating_program.py`.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import operator
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from genesis.ir.dtypes import DType, bool_, uint8
from genesis.runtime.cuda.gpu import Command, Mark, UnavailableError
from genesis.runtime.cuda.memory import GpuMemory
from genesis.runtime.groups import Collective
from genesis.runtime.installation import install_command

LIBRARY = "libnccl.so.2"
PATIENCE = 2.0
GRAPHS = 4 * 62  # that the ranks of a communicator hold together
PAUSE = 0.0002  # seconds between questions whether a call is done
Call = tuple[str, tuple[int, ...]]  # a function and its arguments, without those that all calls have: communicator, stream
Functions = Mapping[str, Callable[..., int]]


class UniqueId(ctypes.Structure):
    """The id by which a communicator's ranks find each other."""

    _fields_ = [("internal", ctypes.c_byte * 128)]


class Config(ctypes.Structure):
    """ncclConfig_t of NCCL 2.18. Later versions accept it: they read `size` bytes, and know its fields by `version`."""

    _fields_ = [
        ("size", ctypes.c_size_t), ("magic", ctypes.c_uint), ("version", ctypes.c_uint), ("blocking", ctypes.c_int),
        ("cga_cluster_size", ctypes.c_int), ("min_ctas", ctypes.c_int), ("max_ctas", ctypes.c_int),
        ("net_name", ctypes.c_char_p), ("split_share", ctypes.c_int),
    ]

    @staticmethod
    def made() -> Config:
        """A non-blocking configuration with NCCL's defaults."""
        return Config(ctypes.sizeof(Config), 0xCAFEBEEF, 21800, 0, *[_UNDEFINED] * 3, None, _UNDEFINED)


_UNDEFINED = -(1 << 31)  # NCCL_CONFIG_UNDEF_INT

_POINTER, _INT, _SIZE = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
_END = _POINTER, _POINTER  # the communicator and the stream
SIGNATURES: dict[str, tuple[Any, ...]] = {
    "GetUniqueId": (ctypes.POINTER(UniqueId),),
    "CommInitRankConfig": (ctypes.POINTER(_POINTER), _INT, UniqueId, _INT, ctypes.POINTER(Config)),
    "CommAbort": (_POINTER,), "CommFinalize": (_POINTER,), "CommDestroy": (_POINTER,),
    "CommGetAsyncError": (_POINTER, ctypes.POINTER(_INT)),
    "GetErrorString": (_INT,), "GetLastError": (_POINTER,),
    "GroupStart": (), "GroupEnd": (),
    "AllReduce": (_POINTER, _POINTER, _SIZE, _INT, _INT, *_END),
    "Reduce": (_POINTER, _POINTER, _SIZE, _INT, _INT, _INT, *_END),
    "ReduceScatter": (_POINTER, _POINTER, _SIZE, _INT, _INT, *_END),
    "Broadcast": (_POINTER, _POINTER, _SIZE, _INT, _INT, *_END),
    "AllGather": (_POINTER, _POINTER, _SIZE, _INT, *_END),
    "Send": (_POINTER, _SIZE, _INT, _INT, *_END),
    "Recv": (_POINTER, _SIZE, _INT, _INT, *_END),
}
TEXTS = "GetErrorString", "GetLastError"  # which return text, the others a status
SUCCESS, IN_PROGRESS = 0, 7  # ncclResult_t
TYPES = {  # ncclDataType_t; others move as bytes
    "int8": 0, "uint8": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5, "float16": 6, "float32": 7, "float64": 8,
    "bfloat16": 9,
}
REDUCTIONS = {"sum": 0, "prod": 1, "max": 2, "min": 3}  # ncclRedOp_t
_PARTS = {"complex64": "float32", "complex128": "float64"}  # two numbers each, which are added one by one


@functools.cache
def library() -> Functions:
    """The functions by name, without "nccl". Raises UnavailableError if NCCL is missing or too old."""
    wheels = importlib.util.find_spec("nvidia")
    folders = [*(wheels.submodule_search_locations or ())] if wheels else []
    found = [path for folder in folders if (path := Path(folder, "nccl", "lib", LIBRARY)).exists()]
    try:
        return functions_of(ctypes.CDLL(str(found[0]) if found else LIBRARY))
    except OSError as problem:
        raise UnavailableError(f"NCCL cannot be loaded ({problem}); install it: {install_command('nccl')}") from problem
    except AttributeError as problem:
        raise UnavailableError(f"this NCCL is too old ({problem}); want 2.19 or newer") from problem


def functions_of(loaded: Any) -> Functions:
    """The functions of a loaded library, with typed arguments."""
    found = {name: getattr(loaded, f"nccl{name}") for name in SIGNATURES}
    for name, function in found.items():
        function.argtypes, function.restype = SIGNATURES[name], _POINTER if name in TEXTS else _INT
    return found


def is_installed() -> bool:
    """Whether NCCL can be loaded."""
    try:
        library()
    except UnavailableError:
        return False
    return True


def unique_id(functions: Functions) -> bytes:
    """A new id for the ranks of a communicator. Raises UnavailableError."""
    made = UniqueId()
    status = functions["GetUniqueId"](ctypes.byref(made))
    if status:
        raise UnavailableError(f"NCCL: ncclGetUniqueId failed: {_said(functions, status, None)}")
    return bytes(made)


def refusal(dtype: DType, reduce: str) -> str:
    """Why NCCL does not support this reduction of a dtype; empty if it does."""
    kind = uint8 if dtype is bool_ else dtype.compute
    if reduce != "avg" and reduce not in REDUCTIONS:
        return f"NCCL has no {reduce}; want sum, prod, min, max or avg"
    if kind.name in TYPES or (kind.name in _PARTS and reduce in ("sum", "avg")):
        return ""
    return f"NCCL has no {reduce} of {kind.name}; want another dtype" + ", or sum or avg" * (kind.name in _PARTS)


def calls_of(what: Collective, dtype: str, itemsize: int, rank: int, operand: int, result: int) -> list[Call]:
    """The calls of a collective on row-major operands. Several calls are enclosed in a group."""
    op, root, own = what.op, what.root, rank == what.root
    if what.reduce:
        parts = 1 + (dtype in _PARTS)
        kind, step, reduction = TYPES[_PARTS.get(dtype, dtype)], itemsize, REDUCTIONS[what.reduce]
        if op == "all_reduce":
            return [("AllReduce", (operand, result, what.sends[0] * parts, kind, reduction))]
        if op == "reduce_to":
            return [("Reduce", (operand, result, what.sends[0] * parts, kind, reduction, root))]
        if len({*what.sends}) == 1:
            return [("ReduceScatter", (operand, result, what.receives[0] * parts, kind, reduction))]
        return _grouped([("Reduce", (operand + start * step, result, count * parts, kind, reduction, other))
                         for other, start, count in _spans(what.sends)])
    kind, parts = (TYPES[dtype], 1) if dtype in TYPES else (TYPES["uint8"], itemsize)
    if op == "broadcast_from":
        return [("Broadcast", (operand, result, what.sends[0] * parts, kind, root))]
    if op == "all_gather" and len({*what.receives}) == 1:
        return [("AllGather", (operand, result, what.sends[0] * parts, kind))]
    if op == "all_gather":
        return _grouped([
            ("Broadcast", (operand if other == rank else result + start * itemsize, result + start * itemsize, count * parts,
                           kind, other)) for other, start, count in _spans(what.receives)])
    sends, receives = _spans(what.sends), _spans(what.receives)
    if op == "exchange":
        sends, receives = [(root, 0, what.sends[0])], [(root, 0, what.receives[0])]
    elif op == "gather_to":
        sends, receives = [(root, 0, what.sends[0])], receives if own else []
    elif op == "scatter_from":
        sends, receives = sends if own else [], [(root, 0, what.receives[0])]
    return _grouped([
        (name, (address + start * itemsize, count * parts, kind, other))
        for name, address, spans in (("Send", operand, sends), ("Recv", result, receives)) for other, start, count in spans
        if count])


def _spans(counts: Sequence[int]) -> list[tuple[int, int, int]]:
    """Each rank, its first element, and how many it has, for those that have some."""
    return [(rank, start, count) for rank, (start, count) in enumerate(zip(accumulate(counts, initial=0), counts, strict=False))
            if count]


def _grouped(calls: list[Call]) -> list[Call]:
    return [("GroupStart", ()), *calls, ("GroupEnd", ())] if calls else []


class SharedGraph:
    """A graph that the ranks of a communicator captured together, under one number; `kept` is memory that it reads."""

    def __init__(self, number: int, command: Command, kept: object) -> None:
        self.number, self.command, self.kept = number, command, kept


class Communicator:
    """Ranks that communicate from GPU to GPU; that of `memory` is this rank's.

    `problem` is NCCL's message after a failure; `lost` the reason, if any, why values on the GPU must not be read any more;
    `patience` the seconds that operations in flight may take after a failure.
    `graphs` are the ranks' common graphs by number, as long as their programs live.
    It waits for other ranks for at most `timeout` seconds, also at its creation, which raises UnavailableError if they do not
    arrive or NCCL refuses.
    """

    def __init__(
        self, memory: GpuMemory, functions: Functions, ident: bytes, size: int, rank: int, timeout: float = 1800.0
    ) -> None:
        self.memory, self.rank, self.problem, self.lost = memory, rank, "", ""
        self._timeout = timeout
        self.patience = PATIENCE
        self.latest: tuple[Collective, Mark] | None = None  # what may be under way, and the mark behind it
        self.graphs: weakref.WeakValueDictionary[int, SharedGraph] = weakref.WeakValueDictionary()
        self._captures = 0
        self._functions, self._handle = functions, ctypes.c_void_p()
        status = memory.gpu.call(
            functions["CommInitRankConfig"], ctypes.byref(self._handle), size, UniqueId.from_buffer_copy(ident), rank,
            ctypes.byref(Config.made()))
        if status in (SUCCESS, IN_PROGRESS):
            status = self._settled()
        if status != SUCCESS:
            what = (f"did not end within {timeout:g} s: a rank did not come, or its GPU cannot be reached"
                    if status == IN_PROGRESS else f"failed: {_said(functions, status, self._handle)}")
            if self._handle:
                memory.gpu.call(functions["CommAbort"], self._handle)
                self._handle = ctypes.c_void_p()
            raise UnavailableError(f"NCCL: ncclCommInitRankConfig {what}")

    def commands(self, what: Collective, dtype: str, itemsize: int, operand: int, result: int) -> list[Command]:
        """The calls of a collective on memory at these addresses."""
        end = self._handle, self.memory.gpu.communication_stream
        return [functools.partial(self._functions[name], *arguments, *(end if arguments else ()))
                for name, arguments in calls_of(what, dtype, itemsize, self.rank, operand, result)]

    def next_graph(self) -> int:
        """The number of the graph that all ranks are about to capture; no rank holds another one under it any more."""
        number = self._captures % GRAPHS
        self._captures += 1
        self.graphs.pop(number, None)
        return number

    def submit(self, commands: Sequence[Command]) -> bool:
        """Start the calls; returns whether NCCL accepted them. The caller holds the memory's lock."""
        # One pass of C code, in which no interrupt comes: a group that was begun is ended.
        found = self.memory.gpu.call(_all, commands)
        failed = [status for status in found if status not in (SUCCESS, IN_PROGRESS)]
        if not failed and found and found[-1] == IN_PROGRESS:  # a mark would be in front of what is not in the stream yet
            failed = [status] if (status := self._settled()) != SUCCESS else []
        if failed == [IN_PROGRESS]:
            self.problem = f"NCCL did not begin it within {self._timeout:g} s"
        elif failed:
            self.problem = f"NCCL says: {_said(self._functions, failed[0], self._handle)}"
        return not failed

    def _settled(self) -> int:
        """NCCL's status once the call has started; `IN_PROGRESS` if the time is over."""
        state, began = ctypes.c_int(IN_PROGRESS), time.monotonic()
        while True:
            status = self.memory.gpu.call(self._functions["CommGetAsyncError"], self._handle, ctypes.byref(state))
            status = int(status or state.value)
            if status != IN_PROGRESS or time.monotonic() - began > self._timeout:
                return status
            time.sleep(PAUSE)

    def has_failed(self) -> bool:
        """Whether an operation failed, on this rank or, as NCCL reports, on another."""
        return self._is_lost() or bool(self.problem)

    def _is_lost(self) -> bool:
        """Whether NCCL reports that an operation will not end."""
        state = ctypes.c_int()
        status = self._functions["CommGetAsyncError"](self._handle, ctypes.byref(state)) or state.value
        if status not in (SUCCESS, IN_PROGRESS):
            self.problem = f"NCCL says: {_said(self._functions, status, self._handle)}"
        return status not in (SUCCESS, IN_PROGRESS)

    def close(self, is_broken: bool) -> None:
        """Destroy it. After a failure, operations in flight get a moment to end, and are then aborted."""
        if not self._handle:
            return
        if is_broken:
            deadline = time.monotonic() + self.patience
            while self._is_under_way() and time.monotonic() < deadline and not self._is_lost():
                time.sleep(0.001)
            if self._is_under_way():
                assert self.latest is not None
                self.lost = (f"values on cuda:{self.memory.gpu.index} may be wrong: {self.latest[0].op} {self.latest[0].said} "
                             "was given up; begin the job again")
        for graph in [*self.graphs.values()]:  # NCCL waits for the end of graphs that hold its calls
            graph.command = _gone
        if not is_broken:  # all that was begun has to be over, and NCCL to have said so
            status = self.memory.gpu.call(self._functions["CommFinalize"], self._handle)
            is_broken = (self._settled() if status == IN_PROGRESS else status) != SUCCESS
        handle, self._handle = self._handle, ctypes.c_void_p()
        self.memory.gpu.call(self._functions["CommAbort" if is_broken else "CommDestroy"], handle)

    def _is_under_way(self) -> bool:
        return self.latest is not None and not self.memory.gpu.has_passed(self.latest[1])


def _gone() -> None:
    raise RuntimeError("the graph's communicator was closed")


def _all(commands: Sequence[Command]) -> list[int]:
    return [*map(operator.call, commands)]


def _said(functions: Functions, status: int, handle: object) -> str:
    """NCCL's text for a status, and its last message."""
    texts = [functions["GetErrorString"](status), functions["GetLastError"](handle)]
    return ": ".join(filter(None, [ctypes.string_at(text).decode(errors="replace").strip() for text in texts if text]))
