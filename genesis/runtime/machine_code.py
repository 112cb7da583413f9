"""Object code to callable addresses, through llvmlite alone."""

from __future__ import annotations

import ctypes
from typing import Any

import llvmlite.binding as llvm

from genesis.runtime.compile_workers import compile_modules
from genesis.runtime.fork import fork_safe_lock

__all__ = ["compile_modules", "load", "target"]

_lock = fork_safe_lock()
_engine: Any = None
_addresses: dict[str, int] = {}  # of the present engine's symbols


def target() -> tuple[str, str, str]:
    """(triple, processor, features) of the machine code made and loaded here."""
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def load(object_code: bytes, symbol: str) -> int:
    """Link `object_code` into the process and return the address of `symbol`. It stays there as long as the process.

    Raises RuntimeError if the object does not define the symbol.
    """
    global _engine
    with _lock:
        if _engine is None or symbol in _addresses:  # an engine has one definition per symbol
            _engine = _new_engine()
        _engine.add_object_file(llvm.ObjectFileRef.from_data(object_code))
        _engine.finalize_object()
        address = _engine.get_function_address(symbol)
        if not address:
            raise RuntimeError(f"load: the object code does not define {symbol}")
        _addresses[symbol] = address
        return address


def _new_engine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    _addresses.clear()
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))  # immortal: parked threads run its code until the process ends
    return engine
