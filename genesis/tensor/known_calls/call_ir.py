"""Modules of LLVM IR: functions that do without Python what Python has done often, and the short forms of their lines.

    get %a, %b = Trace.step, nodes of %t                loads slots of the object %t; their addresses are %a.at and %b.at
    put %a, %b = Trace.step, nodes of %t                has these slots own other objects
    thread %grad_enabled, %eager else ret ptr null      loads items of this thread's `%state`
    %t has base none, seen zero else ret i1 false       returns unless these are the attributes of a tensor
    %unset = set base root, seen zero of %t             sets attributes of a tensor; another number than 0 if one failed
    %x = python %f(%a, %b)                              calls a Python function
    own %a, %b                                          owns them once more; `drop` disowns them

A function that has %objects begins with loads of those that it names, and with the place for what it gives to Python.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from genesis.runtime.object_words import slot_offset
from genesis.runtime.owning_ir import OWNING
from genesis.tensor.known_calls.key_ir import KEY
from genesis.tensor.known_calls.lock_ir import IF_NOT_DENSE, locked_ir
from genesis.tensor.known_calls.look_ir import LOOK
from genesis.tensor.known_calls.present_ir import PRESENT
from genesis.tensor.known_calls.record_ir import RECORD
from genesis.tensor.known_calls.setting_ir import SETTING_TOKEN
from genesis.tensor.known_calls.take_ir import TAKE
from genesis.tensor.known_calls.tensor_ir import TENSOR_TOKEN
from genesis.tensor.known_calls.thread_ir import THREAD
from genesis.tensor.known_calls.trace_ir import trace_ir
from genesis.tensor.known_calls.view_ir import view_ir
from genesis.tensor.known_calls.write_ir import WRITE

Names = Sequence[str]  # of the objects that machine code refers to
Slotted = Mapping[str, type]  # classes with slots, by their names


_MODULES = {  # symbol -> what it calls while it holds LOCK, that function's IR, and what it does after a failure
    "genesis_call": (
        "call_into", lambda: TENSOR_TOKEN + SETTING_TOKEN + KEY + RECORD + trace_ir() + THREAD + TAKE, IF_NOT_DENSE),
    "genesis_write": ("write", lambda: WRITE, ""),
    "genesis_look": ("look", lambda: LOOK, ""),
    "genesis_view": ("view", view_ir, ""),
}


def module_ir(symbol: str, kinds: Slotted, names: Names) -> str:
    """The module that defines `PyObject* symbol(self, given, count)`, given what the `KnownCalls.call` of its Python takes."""
    function, functions, otherwise = _MODULES[symbol]
    return _spelled_out(functions() + locked_ir(symbol, function, otherwise), kinds, names)


def _spelled_out(functions: str, kinds: Slotted, names: Names) -> str:
    """A module of functions and those that all share, without the short forms of lines."""
    def moved(line: re.Match[str]) -> list[str]:
        how, names, kind, attributes, owner = line.groups()
        made = []
        for name, attribute in zip(names.split(", "), attributes.split(", "), strict=True):
            at = f"{name}.at" if how == "get" else f"%put.{line.start()}.{attribute}"
            made += [f"  {at} = getelementptr i8, ptr {owner}, i64 {slot_offset(kinds[kind], attribute)}",
                     f"  {name} = load ptr, ptr {at}" if how == "get" else f"  call void @replace(ptr {at}, ptr {name})"]
        return made

    def looked_up(line: re.Match[str]) -> list[str]:
        return [f"  %state = call ptr @PyObject_GetAttr(ptr %thread.state, ptr %dict.name) else {line[2]}",
                *[f"  {name} = call ptr @PyDict_GetItemWithError(ptr %state, ptr {name}.name)" for name in line[1].split(", ")],
                "  call void @disown(ptr %state)"]

    def compared(line: re.Match[str]) -> list[str]:
        number, owner, wanted, otherwise = line.start(), *line.groups()
        return [f"  %has.{number}.{k} = call i1 @has(ptr {owner}, ptr %{name}.name, ptr %{value})\n"
                f"  unless %has.{number}.{k}: {otherwise}"
                for k, (name, value) in enumerate(pair.split() for pair in wanted.split(", "))]

    def assigned(line: re.Match[str]) -> list[str]:
        unset, given, owner = line.groups()
        made, before = [], "0"
        for k, (name, value) in enumerate(pair.split() for pair in given.split(", ")):
            made += [f"  {unset}.{k} = call i32 @PyObject_SetAttr(ptr {owner}, ptr %{name}.name, ptr %{value})",
                     f"  {unset}.so.{k} = or i32 {before}, {unset}.{k}"]
            before = f"{unset}.so.{k}"
        return [*made, f"  {unset} = or i32 0, {before}"]

    def counted(line: re.Match[str]) -> list[str]:
        return [f"  call void @{'own' if line[1] == 'own' else 'disown'}(ptr {name})" for name in line[2].split(", ")]

    def asked(line: re.Match[str]) -> list[str]:
        found, function, given, otherwise = line.groups()
        stores = [f"  store ptr {argument}, ptr %to.python[{k}]" for k, argument in enumerate(given.split(", "))]
        call = f"@PyObject_Vectorcall(ptr {function}, ptr %to.python, i64 {len(stores)}, ptr null)"
        return [*stores, f"  {found} = call ptr {call}{otherwise}"]

    def with_objects(function: str) -> str:
        named = {*re.findall(r"%([\w.]+)", function)}
        used = [f"{number} ptr {name}" for number, name in enumerate((*names, "object.new")) if name in named]
        loads = f"  load %objects: {', '.join(used)}\n" if used else ""
        most = max(map(int, re.findall(r"%to\.python\[(\d+)\]", function)), default=-1)
        place = f"  %to.python = alloca [{most + 1} x ptr]\n" if most >= 0 else ""
        begins = r"  %objects = .+\n|^define [^{]*%objects[^{]*{\n(?:entry:\n)?"
        return re.sub(begins, rf"\g<0>{loads}{place}", function, count=1)

    text = PRESENT + functions
    for form, spelled in (
        (r"(get|put) (%.+) = (\w+)\.(.+) of (%\S+)", moved), (r"thread (%.+) else (.+)", looked_up),
        (r"(%\S+) has (.+) else (.+)", compared), (r"(%\S+) = set (.+) of (%\S+)", assigned), (r"(own|drop) (%.+)", counted),
        (r"(%\S+) = python (%\S+)\((.+?)\)(.*)", asked),
    ):
        text = re.sub(f"^  {form}$", lambda line: "\n".join(spelled(line)), text, flags=re.MULTILINE)  # noqa: B023
    text = "".join(map(with_objects, re.split("^(?=define )", text, flags=re.MULTILINE)))
    structs = f"%objects = type {{ {', '.join(['ptr'] * (len(names) + 1))} }}\n%given = type {{ ptr, ptr, ptr, ptr }}\n"
    return structs + text + OWNING
