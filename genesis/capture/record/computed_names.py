"""What code passes to `getattr` and the like, by the instructions that have computed it.

A profiler hook sees which function is called, but not its arguments. Those that are constants, variables, attributes, items and
joined strings are found again; nothing of that runs code of objects.
"""

from __future__ import annotations

import dis
from collections.abc import Sequence
from types import FrameType, MemberDescriptorType, ModuleType, SimpleNamespace
from typing import Any, Final

from genesis.capture.guards.attributes import MISSING, found_in
from genesis.capture.guards.opcodes import Arguments, calls_result

UNCERTAIN: Final = object()
_SCALARS = (str, int, bool, float, type(None))
_CONTAINERS = (list, tuple, dict)


def passed(arguments: Arguments, frame: FrameType) -> list[Any]:
    """The arguments of the call that `frame` makes now; UNCERTAIN for those that are not known with certainty."""
    stores = any(i.opname.startswith("STORE") for argument in arguments for i in argument)
    found: list[Any] = []
    for argument in reversed(arguments):
        # Where a later argument runs code, only a local variable is still what was passed.
        is_local = len(argument) == 1 and argument[0].opname.startswith("LOAD_FAST")
        is_sure = not stores if is_local else all(value is not UNCERTAIN for value in found)
        found.insert(0, _value(argument, frame) if is_sure else UNCERTAIN)
    return found


def _value(argument: Sequence[dis.Instruction], frame: FrameType) -> Any:
    stack: list[Any] = []
    for i in argument:
        if i.opname == "LOAD_CONST":
            made = i.argval
        elif i.opname.startswith("LOAD_FAST") or i.opname == "LOAD_DEREF":
            made = frame.f_locals.get(i.argval, UNCERTAIN)
        elif i.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            made = frame.f_globals.get(i.argval, frame.f_builtins.get(i.argval, UNCERTAIN))
        elif i.opname == "LOAD_ATTR" and not calls_result(i):
            made = _attribute(stack.pop(), i.argval)
        elif i.opname in ("FORMAT_VALUE", "FORMAT_SIMPLE") and not i.arg and type(stack[-1]) in _SCALARS:
            made = format(stack.pop())
        elif i.opname == "BUILD_STRING":
            made = "".join(stack[-i.argval :])
            del stack[-i.argval :]
        elif i.opname == "BINARY_OP" and i.argrepr == "+" and type(stack[-1]) is type(stack[-2]) is str:
            end = stack.pop()
            made = stack.pop() + end
        elif i.opname == "BINARY_SUBSCR" and type(stack[-1]) in _SCALARS and type(stack[-2]) in _CONTAINERS:
            key = stack.pop()
            made = stack.pop()[key]
        else:
            return UNCERTAIN
        if made is UNCERTAIN:
            return UNCERTAIN
        stack.append(made)
    return stack[-1]


def _attribute(owner: object, name: str) -> object:
    """An attribute that an object has itself, found without running its code."""
    kind = type(owner)
    if kind not in (ModuleType, SimpleNamespace) and kind.__getattribute__ is not object.__getattribute__:
        return UNCERTAIN
    found = found_in(kind, name)
    if isinstance(found, MemberDescriptorType):
        return getattr(owner, name, UNCERTAIN)
    return getattr(owner, "__dict__", {}).get(name, UNCERTAIN) if found is MISSING else UNCERTAIN
