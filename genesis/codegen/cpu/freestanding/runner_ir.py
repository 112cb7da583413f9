"""The runner of an object file, as LLVM IR: it fills in addresses and calls the kernels in order, on one thread."""

from __future__ import annotations

from collections.abc import Sequence

from genesis.codegen.cpu.freestanding.interface import Copy, Interface
from genesis.ir.shapes import numel
from genesis.runtime.executor_ir import FAULT_WORDS, relocate_ir
from genesis.runtime.launch_ir import CHUNK, launch_ir
from genesis.runtime.native import FAULT_OFFSET, RUN_SLOTS, SLOTS_OFFSET, ProgramLayout
from genesis.runtime.short_ir import spelled_out, with_words

_MAIN = """
%relocation = type { ptr, i64, i64 }
@memory = internal global ptr null                ; the weights, and the working memory behind them
@mode = private constant [3 x i8] c"rb\\00"

define i32 @NAME_load(ptr %path) {
  call void @NAME_free()
  %file = call ptr @fopen(ptr %path, ptr @mode)
  if ptr %file != null: %opened
  ret i32 1
opened:
  %new = call ptr @aligned_alloc(i64 64, i64 TOTAL_BYTES)
  if ptr %new != null: %reading
  call i32 @fclose(ptr %file)
  ret i32 3
reading:
  %count = call i64 @fread(ptr %new, i64 1, i64 WEIGHTS_BYTES, ptr %file)
  %next = call i32 @fgetc(ptr %file)
  call i32 @fclose(ptr %file)
  if i64 %count == WEIGHTS_BYTES and i32 %next == -1: %read
  call void @free(ptr %new)
  ret i32 2
read:
  store ptr %new, ptr @memory
  ret i32 0
}

define void @NAME_free() {
  %old = load ptr, ptr @memory
  call void @free(ptr %old)
  store ptr null, ptr @memory
  ret void
}

define i32 @NAME_run(ptr %inputs, ptr %outputs) {
  %memory = load ptr, ptr @memory
  if ptr %memory != null: %fill
  ret i32 -1
fill:
  %fault = getelementptr i64, ptr @words, i64 FAULT_WORD
  call void @llvm.memset.p0.i64(ptr %fault, i8 0, i64 FAULT_BYTES, i1 false)
  %relocations = load ptr, ptr getelementptr (i64, ptr @words, i64 3)
  %slots = load ptr, ptr getelementptr (i64, ptr @words, i64 4)
SLOTS
RELOCATE
  for %l = 0 ult LAUNCHES:
  %launches = load ptr, ptr getelementptr (i64, ptr @words, i64 1)
  %launch = getelementptr %launch, ptr %launches, i64 %l
  call void @run_launch(ptr null, ptr %launch, ptr %slots, ptr %fault)
  %flag = load i64, ptr %fault
  if i64 %flag != 0: ret i32 4
  next %l
COPIES
  ret i32 0
}

declare ptr @fopen(ptr, ptr)
declare i64 @fread(ptr, i64, i64, ptr)
declare i32 @fgetc(ptr)
declare i32 @fclose(ptr)
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""


def runner_ir(
    layout: ProgramLayout, interface: Interface, arena_bytes: int, name: str, data: Sequence[str], kernels: Sequence[str]
) -> str:
    """The module that defines the functions of `name`, and uses `kernels`."""
    weights = -(-interface.weights_bytes // 64) * 64
    working = weights + -(-interface.working_bytes // 64) * 64
    main = with_words(
        _MAIN, **{f"NAME_{verb}": f"{name}_{verb}" for verb in ("load", "free", "run")},
        TOTAL_BYTES=working + -(-arena_bytes // 64) * 64 + 64, WEIGHTS_BYTES=interface.weights_bytes,
        FAULT_WORD=FAULT_OFFSET // 8, FAULT_BYTES=8 * FAULT_WORDS, LAUNCHES=layout.words[0],
        RELOCATE=relocate_ir(str(len(layout.relocations))), SLOTS=_slots(interface, weights, working),
        COPIES=_copies(interface.copies))
    declared = [f'declare void @"{kernel}"(i64, i64, ptr, i64)' for kernel in kernels]
    return "\n".join([_words(layout), *data, *declared, spelled_out(CHUNK + launch_ir(by_team=False) + main)])


def _words(layout: ProgramLayout) -> str:
    """The program as data."""
    pointers = {*layout.pointers}
    values = []
    for index, word in enumerate(layout.words):
        if index in layout.symbols:
            values.append(f'i64 ptrtoint (ptr @"{layout.symbols[index]}" to i64)')
        elif index in pointers:
            values.append(f"i64 ptrtoint (ptr getelementptr (i64, ptr @words, i64 {word}) to i64)")
        else:
            values.append(f"i64 {0 if index == 6 else int(word)}")  # no team
    return f"@words = internal global [{len(values)} x i64] [{', '.join(values)}], align 64"


def _slots(interface: Interface, weights: int, working: int) -> str:
    """The lines that write the slots of a run."""
    lines: list[str] = []
    first = SLOTS_OFFSET // 8 + RUN_SLOTS

    def put(value: str) -> None:
        lines.append(f"  store i64 {value}, ptr getelementptr (i64, ptr @words, i64 {first + len(where)})")
        where.append(value)

    where: list[str] = []

    def address(number: str, given: int | None, table: str, offset: int) -> str:
        if given is None:
            lines.append(f"  %{number}.at = getelementptr i8, ptr %memory, i64 {offset}")
        else:
            lines.append(f"  %{number}.at = load ptr, ptr %{table}[{given}]")
        lines.append(f"  %{number} = ptrtoint ptr %{number}.at to i64")
        return f"%{number}"

    for k, (given, offset) in enumerate(zip(interface.inputs, interface.weights, strict=True)):
        put(address(f"input.{k}", given, "inputs", offset))
    for k, (given, offset) in enumerate(zip(interface.outputs, interface.buffers, strict=True)):
        put(address(f"output.{k}", given, "outputs", weights + offset))
    put(address("arena", None, "", working))
    for number in interface.scalars:
        put(str(number))
    return "\n".join(lines)


def _copies(copies: Sequence[Copy | None]) -> str:
    """The lines that copy results to the caller's memory, element by element."""
    lines: list[str] = []
    for k, copy in enumerate(copies):
        if copy is None or 0 in copy.shape:
            continue
        kind, slot = f"i{8 * copy.itemsize}", SLOTS_OFFSET // 8 + RUN_SLOTS + copy.slot
        lines += [
            f"  %c{k}.target = load ptr, ptr %outputs[{k}]",
            f"  %c{k}.source = load ptr, ptr getelementptr (i64, ptr @words, i64 {slot})",
            f"  for %c{k} = 0 ult {numel(copy.shape)}:"]
        rest, offset = f"%c{k}", str(copy.offset)
        for axis in reversed(range(len(copy.shape))):
            t = f"%c{k}.{axis}"
            lines += [f"  {t}.at = urem i64 {rest}, {copy.shape[axis]}", f"  {t}.rest = udiv i64 {rest}, {copy.shape[axis]}",
                      f"  {t}.step = mul i64 {t}.at, {copy.strides[axis]}", f"  {t}.sum = add i64 {offset}, {t}.step"]
            rest, offset = f"{t}.rest", f"{t}.sum"
        lines += [
            f"  %c{k}.value = load {kind}, ptr %c{k}.source[{offset}], align 1",
            f"  store {kind} %c{k}.value, ptr %c{k}.target[%c{k}], align 1", f"  next %c{k}"]
    return "\n".join(lines)
