"""The kinds of objects that a recorded call may meet.

An object is understood if each class that it derives from is a Python class, whose code the watch sees, or one that is listed
here. Any other may behave differently the next time, unseen by the watch: a call that meets one is not replayed.
"""

from __future__ import annotations

import array
import collections
import collections.abc
import contextvars
import dataclasses
import enum
import functools
import itertools
import operator
import random
import re
import types
import typing
import weakref

import numpy as np

from genesis.ir.dtypes import DType
from genesis.ir.library import Library
from genesis.runtime.devices import Device

# The private attribute of classes of `abc`. It changes, but only code of `abc` reads it; calls that run such code are guarded
# by the token that changes with it.
_ABSTRACT: type = type(vars(collections.abc.Sized)["_abc_impl"])
SCALARS = (int, float, bool, str, bytes, complex, type(None), np.generic)
CHANGING = (np.ndarray, array.array, bytearray, memoryview, random.Random, np.random.Generator, np.random.RandomState)
IMMUTABLE = (DType, Device, re.Pattern, np.dtype, np.ufunc, range, slice, types.CodeType, types.GenericAlias, types.UnionType,
             _ABSTRACT)

TUPLE_FIELD: type = type(vars(collections.namedtuple("_Pair", "first second"))["first"])
_ITERATORS = [kind for kind in vars(itertools).values() if isinstance(kind, type)]
_FORMS = [type(typing.TypeVar("_T")), type(typing.ParamSpec("_P"))]
_KNOWN = frozenset({
    object, type, int, float, complex, bool, str, bytes, bytearray, tuple, list, dict, set, frozenset, range, slice, type(None),
    type(...), type(NotImplemented), enumerate, zip, map, filter, reversed, super, property, classmethod, staticmethod,
    collections.deque, collections.OrderedDict, collections.defaultdict, functools.partial, functools._lru_cache_wrapper,
    operator.itemgetter, operator.attrgetter, operator.methodcaller, *_ITERATORS, *_FORMS,
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.MethodDescriptorType, types.WrapperDescriptorType,
    types.MethodWrapperType, types.ClassMethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType,
    types.ModuleType, types.SimpleNamespace, types.MappingProxyType, types.CodeType, types.GeneratorType, types.GenericAlias,
    types.UnionType, types.DynamicClassAttribute, types.CellType, enum.auto, re.Pattern, re.Match,
    np.ndarray, np.generic, np.dtype, np.ufunc, *[kind for kind in vars(np).values() if isinstance(kind, type)],
    type(np.mean), array.array, memoryview, typing.Generic, TUPLE_FIELD, _ABSTRACT, contextvars.ContextVar, contextvars.Token,
} - {np.memmap, np.nditer, np.vectorize, np.flatiter})
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_positions: weakref.WeakKeyDictionary[type, int] = weakref.WeakKeyDictionary()  # of the first unknown base in a class's MRO
_OWN = ("__dict__", "__weakref__")


def unknown_base(kind: type) -> type | None:
    """The first class in the MRO of `kind` that is not understood; None if there is none.

    >>> import pathlib
    >>> unknown_base(collections.Counter), unknown_base(pathlib.Path), unknown_base(contextvars.Context)
    (None, None, <class '_contextvars.Context'>)
    """
    position = _positions.get(kind)
    if position is None:
        understood = [base in _KNOWN or is_of_python(base) for base in kind.__mro__]
        position = _positions[kind] = -1 if all(understood) else understood.index(False)
    return None if position < 0 else kind.__mro__[position]


def is_of_python(kind: type) -> bool:
    """Whether a class was made by a `class` statement, or is a built-in exception; C classes have C slots or functions."""
    if (issubclass(kind, BaseException) and kind.__module__ == "builtins") or issubclass(kind, np.generic | np.dtype):
        return True
    if not kind.__flags__ & _HEAP_TYPE:
        return False
    for name, value in vars(kind).items():
        made_of_c = types.MethodDescriptorType | types.WrapperDescriptorType | types.ClassMethodDescriptorType
        if isinstance(value, made_of_c) and getattr(value, "__objclass__", None) is kind:
            return False
        if isinstance(value, types.GetSetDescriptorType) and name not in _OWN and value.__objclass__ is kind:
            return False
        if isinstance(value, types.BuiltinFunctionType) and value.__self__ is kind:
            return False
    return True


def is_scalar(value: object) -> bool:
    """Whether a value is a number, a string or None, without attributes of its own."""
    return isinstance(value, SCALARS) and not hasattr(value, "__dict__")


def slots_of(kind: type) -> list[str]:
    """The names of the slots that users' classes among the bases of `kind` have."""
    return [name for base in kind.__mro__ if base.__flags__ & _HEAP_TYPE and not is_librarys(base.__module__)
            for name, found in vars(base).items() if isinstance(found, types.MemberDescriptorType)]


def data_base(kind: type) -> type | None:
    """`OrderedDict`, `dict`, `list` or `object`, if a class only adds Python and attributes to it; None for another class.

    An instance of such a class is its items and its `__dict__`.

    >>> own = type("Own", (dict,), {"__module__": "users"})
    >>> data_base(collections.UserDict), data_base(own), data_base(dict), data_base(KeyError)
    (<class 'object'>, <class 'dict'>, None, None)
    """
    base = next(base for base in (collections.OrderedDict, dict, list, object) if issubclass(kind, base))
    added = [one for one in kind.__mro__ if one is not typing.Generic and not issubclass(base, one)]
    if not added or issubclass(kind, BaseException | np.generic | enum.Enum) or hasattr(kind, "__del__"):
        return None
    is_users = dataclasses.is_dataclass(kind) or not any(is_librarys(one.__module__) for one in added)
    return base if is_users and all(is_of_python(one) and not vars(one).get("__slots__") for one in added) else None


def is_librarys(module: object) -> bool:
    """Whether a module name is genesis' own or that of the library that it stands in for."""
    return isinstance(module, str) and module.partition(".")[0] in ("genesis", Library.name)
