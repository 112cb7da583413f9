"""The only file that uses numba-cuda: the names that kernels are written in, and compilation to machine code.

Importing it imports the compiler (half a second), so that happens when the first kernel is compiled. With
NUMBA_ENABLE_CUDASIM=1 the same names stand for NumPy's, and kernels are Python functions.
"""

from __future__ import annotations

import math as python_math
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from types import ModuleType, SimpleNamespace
from typing import Any, Protocol, TypeVar

import numpy as np
from llvmlite import ir
from numba import cuda, types

from genesis.codegen.cuda.signature import Machine
from genesis.codegen.cuda.target import SIMULATED
from genesis.ir.annotations import AnyFunction
from genesis.ops.rows import from_scipy

if not SIMULATED:
    from cuda.bindings import nvjitlink
    from numba.cuda import dispatcher, libdevice as functions_of_nvvm
    from numba.cuda.extending import intrinsic
if SIMULATED:
    from numba.cuda.simulator import kernel

    from genesis.codegen.cuda.simulated_block import Block

    simulator: Any = kernel
    simulator.BlockManager = Block


_NAMES = (
    "complex128", "complex64", "float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16",
    "uint8",
)
DTYPES: dict[str, Any] = {name: getattr(np if SIMULATED else types, name) for name in _NAMES}
_lock = threading.RLock()
F = TypeVar("F", bound=AnyFunction)


class Elements(Protocol):
    """Memory as kernels see it: a pointer with a type, or an array of a thread or a block."""

    size: int

    def __getitem__(self, index: int) -> Any: ...

    def __setitem__(self, index: int, value: float) -> None: ...


# ---- the names of kernels ----
class _SharedMemory:
    """The shared arrays of a simulated block, one for each source line that asks; the first thread to come makes it."""

    def array(self, shape: int, dtype: type) -> np.ndarray:
        thread = _player()
        return thread.block.shared.setdefault(sys._getframe(1).f_lineno, np.empty(shape, dtype))


class _Simulated:
    """`cuda` inside a simulated kernel."""

    shared = _SharedMemory()

    def syncwarp(self) -> None:
        self.syncthreads()

    def __getattr__(self, name: str) -> Any:
        return getattr(kernel._get_kernel_context(), name)


device: ModuleType | _Simulated = _Simulated() if SIMULATED else cuda

_RENAMED = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh", "acosh": "arccosh",
            "atanh": "arctanh"}
_PLAIN = ("exp", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "floor",
          "ceil", "trunc", "copysign", "fmod")

math: ModuleType | SimpleNamespace = python_math if not SIMULATED else SimpleNamespace(
    inf=python_math.inf, nan=python_math.nan, pi=python_math.pi,
    pow=lambda x, y: np.power([x], [y])[0],  # of arrays, as C has it
    lgamma=lambda x: type(x)(python_math.lgamma(x)),
    erf=lambda x: type(x)(python_math.erf(x)), erfc=lambda x: type(x)(python_math.erfc(x)),
    **{name: getattr(np, name) for name in _PLAIN}, **{name: getattr(np, other) for name, other in _RENAMED.items()},
)


def _rounded_once(x: float, y: float, z: float) -> np.float64:
    """x y + z."""
    plain = np.float64(x) * np.float64(y) + np.float64(z)
    return np.float64(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))) if np.isfinite(plain) else plain


libdevice: ModuleType | SimpleNamespace = functions_of_nvvm if not SIMULATED else SimpleNamespace(
    rint=np.rint, rintf=np.rint, exp2=np.exp2, exp2f=np.exp2,
    int_as_float=lambda x: np.int32(x).view(np.float32), float_as_int=lambda x: np.float32(x).view(np.int32),
    longlong_as_double=lambda x: np.int64(x).view(np.float64), double_as_longlong=lambda x: np.float64(x).view(np.int64),
    fma=_rounded_once,
    erfinv=from_scipy("erfinv"), erfinvf=from_scipy("erfinv"), nextafter=np.nextafter, nextafterf=np.nextafter,
)


def device_function(function: F) -> F:
    """Decorator: a function that kernels call."""
    return function if SIMULATED else cuda.jit(device=True)(function)


def _player() -> Any:
    """This thread of the host, which plays threads of a simulated block."""
    return threading.current_thread()


def _exchanged(x: float, offset: int) -> float:
    """The `x` of the thread whose number in the warp differs in the bit `offset`."""
    return cuda.shfl_xor_sync(0xFFFFFFFF, x, offset)


def _simulated_exchange(x: float, offset: int) -> float:
    thread = _player()
    thread.block.given[thread.thread_id] = x
    thread.syncthreads()
    taken = thread.block.given[thread.thread_id ^ offset]
    thread.syncthreads()
    return taken


exchanged = _simulated_exchange if SIMULATED else device_function(_exchanged)


class Context(Protocol):
    """Numba's target context, as far as intrinsics use it."""

    def get_value_type(self, type_: types.Type) -> ir.Type: ...


# What numba makes an intrinsic of: its signature, and the function that writes its LLVM IR.
Intrinsic = tuple[object, Callable[[Context, ir.IRBuilder, object, Sequence[ir.Value]], ir.Value]]


def _set_once(typing: object, pointer: types.Type) -> Intrinsic:
    """A compare-and-swap of the int64 at an address from 0 to 1; returns what was there."""
    def write(context: Context, builder: ir.IRBuilder, signature: object, arguments: Sequence[ir.Value]) -> ir.Value:
        number = context.get_value_type(types.int64)
        return builder.extract_value(builder.cmpxchg(arguments[0], number(0), number(1), "monotonic", "monotonic"), 0)

    return types.int64(pointer), write


def _simulated_set_once(pointer: Elements) -> int:
    with _lock:
        was = pointer[0]
        pointer[0] = was or 1
    return was


set_once: Any = _simulated_set_once if SIMULATED else intrinsic(_set_once)


# ---- vectors ----
def _address(context: Context, builder: ir.IRBuilder, pointer: ir.Value, offset: ir.Value) -> ir.Value:
    return builder.ptrtoint(builder.gep(pointer, [offset]), context.get_value_type(types.int64))


def _is_aligned(typing: object, pointer: types.Type, offset: types.Type, nbytes: types.Type) -> Intrinsic:
    def write(context: Context, builder: ir.IRBuilder, signature: object, arguments: Sequence[ir.Value]) -> ir.Value:
        address = _address(context, builder, *arguments[:2])
        low = builder.and_(address, builder.sub(arguments[2], address.type(1)))
        return builder.icmp_unsigned("==", low, address.type(0))

    return types.boolean(pointer, types.int64, types.int64), write


def _aligned(typing: object, pointer: types.Type, offset: types.Type, nbytes: types.Type) -> Intrinsic:
    """A cast through address space 1 tells the compiler that the pointer is to global memory."""
    def write(context: Context, builder: ir.IRBuilder, signature: object, arguments: Sequence[ir.Value]) -> ir.Value:
        address = builder.and_(_address(context, builder, *arguments[:2]), builder.neg(arguments[2]))
        type_ = arguments[0].type
        return builder.addrspacecast(builder.inttoptr(address, type_.pointee.as_pointer(1)), type_)

    return pointer(pointer, types.int64, types.int64), write


def _simulated_is_aligned(pointer: Any, offset: int, nbytes: int) -> bool:
    return (pointer.address + int(offset) * pointer.dtype.itemsize) % nbytes == 0


def _simulated_aligned(pointer: Any, offset: int, nbytes: int) -> Elements:
    return type(pointer)(pointer.address + int(offset) * pointer.dtype.itemsize & -nbytes, pointer.dtype)


# `is_aligned(pointer, offset, nbytes)`: whether an element's address is a multiple of `nbytes`, a power of two.
# `aligned(..)`: a pointer to that element. Its last bits are masked to 0, so that the compiler knows the alignment and merges
# adjacent loads.
# Measured on the PTX: `address & 15` added to the pointer, aligned records and `llvm.assume` do not convince the compiler.
is_aligned: Any = _simulated_is_aligned if SIMULATED else intrinsic(_is_aligned)
aligned: Any = _simulated_aligned if SIMULATED else intrinsic(_aligned)


def quietly(function: AnyFunction) -> AnyFunction:
    """A simulated kernel whose arithmetic overflows and divides by zero without a warning, as a device's does."""
    def run(*arguments: object) -> None:
        with np.errstate(all="ignore"):
            function(*arguments)

    return cuda.jit(run)


# ---- compiling ----
def _type(name: str) -> types.Type:
    """A parameter's type from its name: `int64`, `float32*`, `float32**`, or `float32[]` for what atomics work on."""
    if name.endswith("[]"):
        return types.Array(DTYPES[name[:-2]], 1, "C")
    return types.CPointer(_type(name[:-1])) if name.endswith("*") else DTYPES[name]


def compile_ptx(
    source: str, name: str, parameters: Sequence[str], names: Mapping[str, object], capability: tuple[int, int],
    threads: int = 0,
) -> str:
    """The PTX of function `name` of a text, for a compute capability; its entry has the function's name.

    `names` are what the text may use; `parameters` are the types of its arguments, by name; with `threads`, registers are few
    enough for blocks of so many.
    """
    namespace = {**names, "__name__": name}
    exec(compile(source, f"<{name}>", "exec"), namespace)
    signature = types.void(*map(_type, parameters))
    # Device functions that the kernel calls are compiled for the current device, which need not exist here.
    with _lock:
        dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=capability)
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
