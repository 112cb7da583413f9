"""Kinds of objects: those that a recorded call may meet, and what tells that one is as it was.

An object is understood if each class it derives from is a class of Python's, whose code is seen when it runs, or one that is
named here. Any other may answer otherwise the next time, and calls of it are seen by nobody: a call that meets one is not
replayed.
"""

from __future__ import annotations

import array
import collections
import collections.abc
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

# What a class of `abc` keeps for itself: it changes, but code of `abc` alone reads it, and whoever runs that is guarded by the
# token that changes with it.
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
    type(np.mean), array.array, memoryview, typing.Generic, TUPLE_FIELD, _ABSTRACT,
} - {np.memmap, np.nditer, np.vectorize, np.flatiter})
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_positions: weakref.WeakKeyDictionary[type, int] = weakref.WeakKeyDictionary()  # of unknown bases among the bases of classes
_OWN = ("__dict__", "__weakref__")


def unknown_base(kind: type) -> type | None:
    """The first class that `kind` derives from, and that is not understood; None if there is none.

    >>> import contextvars, pathlib
    >>> unknown_base(collections.Counter), unknown_base(pathlib.Path), unknown_base(contextvars.ContextVar)
    (None, None, <class '_contextvars.ContextVar'>)
    """
    position = _positions.get(kind)
    if position is None:
        understood = [base in _KNOWN or is_of_python(base) for base in kind.__mro__]
        position = _positions[kind] = -1 if all(understood) else understood.index(False)
    return None if position < 0 else kind.__mro__[position]


def is_of_python(kind: type) -> bool:
    """Whether a `class` statement made it, or an exception of Python's own; classes of C have slots or functions of C."""
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


def is_librarys(module: object) -> bool:
    """Whether a module of that name is the library's own; its classes are named as those of the library that it stands for."""
    return isinstance(module, str) and module.partition(".")[0] in ("genesis", Library.name)
