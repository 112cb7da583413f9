"""The one place that knows numba-cuda: the names that kernels are written in, and from a function to machine code.

Importing this file imports the compiler (half a second), so it is done when a kernel has to be compiled, not before. With
NUMBA_ENABLE_CUDASIM=1 the same names stand for NumPy's, and kernels are functions that Python runs.
"""

from __future__ import annotations

import math as python_math
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numba import cuda, types

from genesis.codegen.cuda.target import SIMULATED

if not SIMULATED:
    from cuda.bindings import nvjitlink
    from numba.cuda import dispatcher
    from numba.cuda import libdevice as functions_of_nvvm
    from numba.cuda.extending import intrinsic
if SIMULATED:
    from numba.cuda.simulator import kernel

    from genesis.codegen.cuda.simulated_block import Block

    simulator: Any = kernel
    simulator.BlockManager = Block

__all__ = ["DTYPES", "Machine", "aligned", "compile_ptx", "device", "device_function", "exchanged", "is_aligned", "libdevice",
           "link", "math", "set_once"]


_NAMES = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8")
DTYPES: dict[str, Any] = {name: getattr(np if SIMULATED else types, name) for name in _NAMES}
_lock = threading.RLock()


class Machine(NamedTuple):
    """A function's machine code, the registers that a thread of it takes, and the bytes that did not fit in them."""

    cubin: bytes
    registers: int
    spilled: int


# ---- the names of kernels ----


class _SharedMemory:
    """The arrays that a block's threads share, each told by the line that asks for it: one, whoever comes first."""

    def array(self, shape: int, dtype: Any) -> Any:
        thread: Any = threading.current_thread()
        return thread.block.shared.setdefault(sys._getframe(1).f_lineno, np.empty(shape, dtype))


class _Simulated:
    """What `cuda` is inside a simulated kernel."""

    shared = _SharedMemory()

    def syncwarp(self) -> None:
        self.syncthreads()

    def __getattr__(self, name: str) -> Any:
        return getattr(simulator._get_kernel_context(), name)


device: Any = _Simulated() if SIMULATED else cuda

_RENAMED = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh", "acosh": "arccosh",
            "atanh": "arctanh"}
_PLAIN = ("exp", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "floor",
          "ceil", "trunc", "copysign", "fmod")

math: Any = python_math if not SIMULATED else SimpleNamespace(
    inf=python_math.inf, pi=python_math.pi,
    pow=lambda x, y: np.power([x], [y])[0],  # of arrays, as C has it
    erf=lambda x: type(x)(python_math.erf(x)), erfc=lambda x: type(x)(python_math.erfc(x)),
    **{name: getattr(np, name) for name in _PLAIN}, **{name: getattr(np, other) for name, other in _RENAMED.items()},
)
libdevice: Any = functions_of_nvvm if not SIMULATED else SimpleNamespace(
    rint=np.rint, rintf=np.rint, exp2=np.exp2, exp2f=np.exp2,
    int_as_float=lambda x: np.int32(x).view(np.float32), float_as_int=lambda x: np.float32(x).view(np.int32),
)


def device_function(function: Callable[..., Any]) -> Any:
    """Decorator: a function that kernels call."""
    return function if SIMULATED else cuda.jit(device=True)(function)


def _exchanged(x: Any, offset: int) -> Any:
    """What the thread whose number in the warp differs in the bit `offset` gave."""
    return cuda.shfl_xor_sync(0xFFFFFFFF, x, offset)


def _simulated_exchange(x: Any, offset: int) -> Any:
    thread: Any = threading.current_thread()
    thread.block.given[thread.thread_id] = x
    thread.syncthreads()
    taken = thread.block.given[thread.thread_id ^ offset]
    thread.syncthreads()
    return taken


exchanged = _simulated_exchange if SIMULATED else device_function(_exchanged)


def _set_once(typing: Any, pointer: Any) -> Any:
    """For numba: the type of a compare-and-swap of the int64 at an address, and how it is written. It gives what was there."""
    def write(context: Any, builder: Any, signature: Any, arguments: Sequence[Any]) -> Any:
        number = context.get_value_type(types.int64)
        return builder.extract_value(builder.cmpxchg(arguments[0], number(0), number(1), "monotonic", "monotonic"), 0)

    return types.int64(pointer), write


def _simulated_set_once(pointer: Any) -> Any:
    with _lock:
        was = pointer[0]
        pointer[0] = was or 1
    return was


set_once: Any = _simulated_set_once if SIMULATED else intrinsic(_set_once)  # 1 in the place of 0; what was there before


# ---- vectors ----


def _address(context: Any, builder: Any, pointer: Any, offset: Any) -> Any:
    """In a function for numba: the address of an element."""
    return builder.ptrtoint(builder.gep(pointer, [offset]), context.get_value_type(types.int64))


def _is_aligned(typing: Any, pointer: Any, offset: Any, nbytes: Any) -> Any:
    """For numba: the type of `is_aligned`, and how it is written."""
    def write(context: Any, builder: Any, signature: Any, arguments: Sequence[Any]) -> Any:
        address = _address(context, builder, *arguments[:2])
        low = builder.and_(address, builder.sub(arguments[2], address.type(1)))
        return builder.icmp_unsigned("==", low, address.type(0))

    return types.boolean(pointer, types.int64, types.int64), write


def _aligned(typing: Any, pointer: Any, offset: Any, nbytes: Any) -> Any:
    """For numba: the type of `aligned`, and how it is written. The detour by a pointer to global memory (address space 1) tells
    the compiler that it is one.
    """
    def write(context: Any, builder: Any, signature: Any, arguments: Sequence[Any]) -> Any:
        address = builder.and_(_address(context, builder, *arguments[:2]), builder.neg(arguments[2]))
        type_ = arguments[0].type
        return builder.addrspacecast(builder.inttoptr(address, type_.pointee.as_pointer(1)), type_)

    return pointer(pointer, types.int64, types.int64), write


def _simulated_is_aligned(pointer: Any, offset: Any, nbytes: int) -> bool:
    return (pointer.address + int(offset) * pointer.dtype.itemsize) % nbytes == 0


def _simulated_aligned(pointer: Any, offset: Any, nbytes: int) -> Any:
    return type(pointer)(pointer.address + int(offset) * pointer.dtype.itemsize & -nbytes, pointer.dtype)


# `is_aligned(pointer, offset, nbytes)`: whether the address of an element is a multiple of so many bytes, a power of two.
# `aligned(..)`: a pointer to the element, if it is; the compiler sees that its last bits are 0, and loads neighbours at once.
is_aligned: Any = _simulated_is_aligned if SIMULATED else intrinsic(_is_aligned)
aligned: Any = _simulated_aligned if SIMULATED else intrinsic(_aligned)


def quietly(function: Callable[..., Any]) -> Any:
    """A simulated kernel whose arithmetic overflows and divides by zero without a word, as a device's does."""
    def run(*arguments: Any) -> None:
        with np.errstate(all="ignore"):
            function(*arguments)

    return cuda.jit(run)


# ---- compiling ----

def _type(name: str) -> Any:
    """A parameter's type from its name: `int64`, `float32*`, `float32**`, or `float32[]` for what atomics work on."""
    if name.endswith("[]"):
        return types.Array(DTYPES[name[:-2]], 1, "C")
    return types.CPointer(_type(name[:-1])) if name.endswith("*") else DTYPES[name]


def compile_ptx(
    source: str, name: str, parameters: Sequence[str], names: Mapping[str, Any], capability: tuple[int, int], threads: int = 0
) -> str:
    """The PTX of function `name` of a text, for a compute capability; its entry has the function's name.

    `names` are what the text may use; `parameters` are the types of its arguments, by name; with `threads`, registers are few
    enough for blocks of so many.
    """
    namespace = {**names, "__name__": name}
    exec(compile(source, f"<{name}>", "exec"), namespace)
    signature = types.void(*map(_type, parameters))
    with _lock:
        dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=capability)  # asked of what it calls
        ptx, _ = cuda.compile(
            namespace[name], signature, device=False, abi="numba", cc=capability, launch_bounds=threads or None)
    (entry,) = re.findall(r"\.visible \.entry (\w+)", ptx)
    return str(ptx).replace(entry, name)


def link(ptx: str, capability: tuple[int, int]) -> Machine:
    """PTX as machine code for a compute capability."""
    text = ptx.encode()
    options = [f"-arch=sm_{capability[0]}{capability[1]}", "-Xptxas=-v"]
    linker = nvjitlink.create(len(options), options)
    try:
        nvjitlink.add_data(linker, nvjitlink.InputType.PTX, text, len(text), "genesis")
        nvjitlink.complete(linker)
        cubin, log = bytearray(nvjitlink.get_linked_cubin_size(linker)), bytearray(nvjitlink.get_info_log_size(linker))
        nvjitlink.get_linked_cubin(linker, cubin)
        nvjitlink.get_info_log(linker, log)
    finally:
        nvjitlink.destroy(linker)
    said = log.decode(errors="replace")
    registers = max(map(int, re.findall(r"Used (\d+) registers", said)), default=0)
    return Machine(bytes(cubin), registers, sum(map(int, re.findall(r"(\d+) bytes spill", said))))
