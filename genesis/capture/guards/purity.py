"""What guards can compare: impure functions, attributes looked up by name, objects compared by identity."""

from __future__ import annotations

import array
import dis
import itertools
import random
import re
import sys
from types import CodeType, ModuleType

import numpy as np

from genesis.ir.dtypes import DType
from genesis.nn.module import Module
from genesis.runtime.devices import Device

SCALARS = (int, float, bool, str, bytes, complex, type(None), np.generic)
CHANGING = (np.ndarray, array.array, bytearray, memoryview, random.Random, np.random.Generator, np.random.RandomState)
_IMPURE = {
    "random", "_random", "time", "datetime", "secrets", "uuid", "io", "_io", "os", "posix", "socket", "subprocess", "tempfile",
    "logging", "queue", "threading", "_thread", "select", "sys", "shutil", "pathlib", "multiprocessing", "asyncio", "urllib",
}
_IMPURE_BUILTINS = {"print", "input", "open", "next", "exec", "eval", "breakpoint", "globals", "locals"}
_IMPURE_NUMPY = {"empty", "empty_like", "fromfile", "frombuffer", "load", "loadtxt", "memmap", "random"}
DYNAMIC = {"getattr", "hasattr", "vars", "__dict__", "setattr", "attrgetter"}
_ASKING = {"getattr", "hasattr", "setattr"}
_NAMED = {"LOAD_FAST", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_NAME"}  # instructions that bring what one name stands for
_BETWEEN = {"CACHE", "PUSH_NULL", "PRECALL"}


def is_impure(function: object) -> bool:
    """Whether a built-in function may return something else the next time, or has an effect that a replay would not have.

    >>> import math, time
    >>> is_impure(math.sqrt), is_impure(time.time), is_impure([].append), is_impure(print)
    (False, True, False, True)
    """
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    if owner is not None and not isinstance(owner, ModuleType):
        owner = owner if isinstance(owner, type) else type(owner)
        module = owner.__module__ or ""
    else:
        module = getattr(function, "__module__", None) or "builtins"
        if module == "builtins":
            return name in _IMPURE_BUILTINS
    top = module.split(".")[0]
    if top == "numpy":
        return module.startswith("numpy.random") or name in _IMPURE_NUMPY
    return top in _IMPURE or (top not in sys.stdlib_module_names and top != "genesis")


def asked_names(code: CodeType) -> tuple[set[str], bool]:
    """The attributes that `code` asks for by constant names, and whether it may ask for others, by names made as it runs.

    >>> asked_names((lambda x: getattr(x, "size", 0)).__code__), asked_names((lambda x, name: getattr(x, name)).__code__)
    (({'size'}, False), (set(), True))
    """
    names: set[str] = set()
    instructions = [i for i in dis.get_instructions(code) if i.opname not in _BETWEEN]
    for place, instruction in enumerate(instructions):
        if instruction.argval in DYNAMIC and instruction.opname != "LOAD_CONST":
            owner, *following = instructions[place + 1 :]
            name, *others = itertools.dropwhile(lambda i: i.opname == "LOAD_ATTR", following)
            called = next((k for k, i in enumerate(others[:2]) if i.opname == "CALL" and i.arg == k + 2), None)
            if instruction.argval not in _ASKING or owner.opname not in _NAMED or called is None or (
                name.opname != "LOAD_CONST" or not isinstance(name.argval, str)
            ):
                return names, True
            names.add(name.argval)
    return names, False


def impure_names(module: object, code: CodeType) -> set[str]:
    """The impure functions of NumPy that `code` names, if `module` is NumPy: the watch does not see calls of them."""
    if not isinstance(module, ModuleType) or module.__name__.split(".")[0] != "numpy":
        return set()
    return {f"{module.__name__}.{name}" for name in _IMPURE_NUMPY.intersection(code.co_names).intersection(vars(module))}


def is_opaque(value: object) -> bool:
    """Whether an object is compared by identity alone: the library's own, other libraries', the standard library's."""
    if isinstance(value, Module):
        return False
    module = value.__name__ if isinstance(value, ModuleType) else getattr(
        value if isinstance(value, type) else type(value), "__module__", None) or ""
    top = module.split(".")[0]
    if top in ("genesis", "numpy"):
        return top == "numpy" or isinstance(value, type | DType | Device)
    return isinstance(value, CodeType | re.Pattern) or (
        top in sys.stdlib_module_names and top != "__main__" and not hasattr(value, "__dict__")) or (
        isinstance(value, ModuleType | type) and top in sys.stdlib_module_names and top != "__main__")


