"""LLVM IR to object code, through Numba's code generator: its target machine and options, without its front end.

The only file that imports Numba, and it does so at the first compile: a process that finds its kernels on disk saves 0.33 s.
Run as a program, this file is a compile worker.
"""

from __future__ import annotations

import contextlib
import functools
import os
import select
import struct
import sys
from collections.abc import Collection, Iterable
from typing import IO, Any

IDLE_SECONDS = 20.0  # a worker without requests for that long ends itself

# What $GENESIS_TARGET may name, instead of the host's processor, and the features that decide on the width of vectors.
LEVELS = {"x86-64-v3": "+avx,+avx2,+f16c,+fma", "x86-64-v4": "+avx,+avx2,+f16c,+fma,+avx512bw,+avx512f,+avx512vl"}

_LENGTH = struct.Struct("<Q")


@functools.cache
def _code_generator() -> Any:
    from numba.core.codegen import JITCPUCodegen

    class ForTarget(JITCPUCodegen):  # type: ignore[misc]
        def _get_host_cpu_name(self) -> str:
            return os.environ.get("GENESIS_TARGET") or str(super()._get_host_cpu_name())

        def _get_host_cpu_features(self) -> str:
            return LEVELS.get(os.environ.get("GENESIS_TARGET", "")) or str(super()._get_host_cpu_features())

    return ForTarget("genesis")


def compile_module(symbol: str, llvm_ir: str) -> bytes:
    """The object code of a module that defines `symbol`. Raises RuntimeError if the text is not valid LLVM IR."""
    from numba.core.compiler_lock import global_compiler_lock

    with global_compiler_lock:
        machine = _code_generator()._tm
        return machine.emit_object(_optimized(llvm_ir, machine))


def compile_object(modules: Iterable[tuple[str, str, str]], main: str, public: Collection[str]) -> bytes:
    """One object of modules, each (symbol, its name in the object, LLVM IR), and the text `main` that uses them.

    Code of any address, for a linker; all names but `public` are the object's own.
    """
    import llvmlite.binding as llvm
    from numba.core.compiler_lock import global_compiler_lock

    with global_compiler_lock:
        generator = _code_generator()
        machine = llvm.Target.from_triple(generator.magic_tuple()[0]).create_target_machine(
            cpu=generator._get_host_cpu_name(), features=generator._get_host_cpu_features(), opt=3, reloc="pic",
            codemodel="default")
        whole = _optimized(main, machine)
        for symbol, name, llvm_ir in modules:
            module = _optimized(llvm_ir, machine)
            for function in module.functions:
                if not function.is_declaration and function.name != symbol:
                    function.linkage = "internal"
            module.get_function(symbol).name = name
            whole.link_in(module)
        for function in whole.functions:
            if not function.is_declaration and function.name not in public:
                function.linkage = "internal"
        return machine.emit_object(whole)


def _optimized(llvm_ir: str, machine: Any) -> Any:
    """The optimized module of a text."""
    import llvmlite.binding as llvm

    generator = _code_generator()
    module = llvm.parse_assembly(llvm_ir)
    module.triple, module.data_layout = generator.magic_tuple()[0], generator._data_layout
    module.verify()
    # Kernels are explicit vectors already, so five passes are enough. Numba's `Library.finalize` runs three whole pipelines
    # and takes three times as long.
    # Measured over 23 kernels: 29 to 19 ms each, at the same speed; random draws in cache are 7 to 11% slower, for want of
    # loop-invariant code motion. Levels 1 to 3 of the code generator take the same 11 of 15 ms.
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()  # accumulators into registers
    if os.environ.get("NUMBA_OPT") != "0":  # else, the code generator takes as long for what they leave
        passes.add_instruction_combine_pass()
        passes.add_new_gvn_pass()  # removes repeated addresses and bounds
        passes.add_simplify_cfg_pass()
        passes.add_loop_rotate_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    return module


# ---- the worker's conversation: a greeting, then (symbol, IR) in, (object code) out; each part a length and as many bytes ----
def write_frame(stream: IO[bytes], *parts: bytes) -> None:
    """Send `parts` to the other side."""
    stream.write(b"".join(_LENGTH.pack(len(part)) + part for part in parts))
    stream.flush()


def read_frame(stream: IO[bytes]) -> bytes:
    """Receive one part. Raises EOFError when the other side is gone."""
    (length,) = _LENGTH.unpack(_read_exactly(stream, _LENGTH.size))
    return _read_exactly(stream, length)


def _read_exactly(stream: IO[bytes], length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        piece = stream.read(length - len(data))
        if not piece:
            raise EOFError("the other side of the pipe is gone")
        data += piece
    return bytes(data)


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer requests until the parent is gone or has been silent for IDLE_SECONDS. An empty answer means failure."""
    _code_generator()
    write_frame(answers, b"")
    while select.select([requests], [], [], IDLE_SECONDS)[0]:
        try:
            symbol, llvm_ir = read_frame(requests).decode(), read_frame(requests).decode()
        except EOFError:
            return
        try:
            write_frame(answers, compile_module(symbol, llvm_ir))
        except RuntimeError:
            write_frame(answers, b"")


if __name__ == "__main__":
    answers_only = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else may write between the frames
    with contextlib.suppress(BrokenPipeError):  # the parent is gone
        serve(os.fdopen(sys.stdin.fileno(), "rb", buffering=0, closefd=False), answers_only)
