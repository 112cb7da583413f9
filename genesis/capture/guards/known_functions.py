"""C functions and Python modules that compute functions of their arguments. A call of any other is not replayed.

What a function reads in its arguments is guarded with them; changes to them are noticed by the check after the call.
"""

from __future__ import annotations

import collections
import functools
import re
from contextvars import ContextVar
from types import (
    BuiltinFunctionType, ClassMethodDescriptorType, FunctionType, GeneratorType, MappingProxyType, MethodDescriptorType,
    MethodWrapperType, ModuleType, SimpleNamespace, WrapperDescriptorType,
)

import numpy as np

from genesis.capture.guards.kinds import unknown_base


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WHOLE = frozenset({  # modules with only known functions
    "math", "cmath", "itertools", "_operator", "operator", "_bisect", "_heapq", "_collections", "_functools", "_string", "_sre",
    "_abc", "_struct", "_json", "_statistics", "_typing", "unicodedata", "binascii", "numpy.linalg._umath_linalg",
})
_BUILTINS = _names("""
    __build_class__ abs aiter all any anext ascii bin callable chr delattr divmod format getattr hasattr hex isinstance
    issubclass iter len max min next oct ord pow repr round setattr sorted sum vars
""")
_NUMPY = _names("""
    all allclose amax amin any append arange argmax argmin argsort argwhere around array array_equal asanyarray asarray
    ascontiguousarray atleast_1d atleast_2d atleast_3d average bincount broadcast_arrays broadcast_shapes broadcast_to
    can_cast ceil clip column_stack concatenate convolve copy corrcoef count_nonzero cov cross cumprod cumsum delete diag
    diagonal diff digitize dot dstack einsum expand_dims extract eye fabs fft flip fliplr flipud full full_like geomspace
    gradient hamming hanning histogram hsplit hstack identity in1d indices inner insert interp intersect1d isclose
    iscomplexobj isin isreal isrealobj isscalar issubdtype kron linspace logspace matmul max may_share_memory mean median
    meshgrid min min_scalar_type moveaxis nan_to_num nanmax nanmean nanmin nanstd nansum ndim nonzero norm ones ones_like
    outer pad percentile polyfit polyval prod promote_types ptp quantile ravel ravel_multi_index real real_if_close imag
    repeat reshape resize result_type roll rollaxis rot90 round searchsorted setdiff1d shape size sort split sqrt squeeze
    stack std sum swapaxes take tensordot tile trace transpose trapz trapezoid tri tril triu unique unravel_index unwrap
    vander var vdot vsplit vstack where zeros zeros_like
""")
_FUNCTIONS = {
    "builtins": _BUILTINS, "numpy": _NUMPY, "numpy.linalg": _names("cholesky det eig eigh eigvals inv norm qr solve svd"),
    "_codecs": frozenset({"encode", "decode"}), "posix": frozenset({"fspath"}), "sys": frozenset({"intern"}),
    "time": frozenset(), "_warnings": frozenset(),
}
_ALL = frozenset({"*"})
# Types with known methods, functions of the object and their arguments: those listed, or all.
_METHODS: dict[type, frozenset[str]] = {
    **dict.fromkeys([
        int, float, complex, bool, str, bytes, tuple, list, dict, set, frozenset, range, slice, type({}.keys()),
        type({}.values()), type({}.items()), collections.deque, collections.OrderedDict, collections.defaultdict,
        MappingProxyType, re.Pattern, re.Match, GeneratorType, BaseException, property, np.generic, np.dtype, type(None),
        SimpleNamespace, functools.partial, ContextVar,
    ], _ALL),
    bytearray: _ALL,
    type: frozenset({"mro", "__instancecheck__", "__subclasscheck__"}),
    object: frozenset({"__format__", "__reduce_ex__", "__reduce__", "__init_subclass__", "__new__", "__getstate__"}),
    np.ndarray: _names("""
    all any argmax argmin argsort astype clip conj copy cumprod cumsum diagonal dot fill flatten item max mean min nonzero
    prod ravel repeat reshape round searchsorted sort squeeze std sum swapaxes take tobytes tolist trace transpose var view
"""),
}
# Python code of the standard library and NumPy that is a function of its arguments; the names in it are guarded.
_MODULES = _names("""
    _collections_abc _weakrefset abc bisect collections collections.abc contextlib copy copyreg dataclasses enum fractions
    functools heapq itertools json json.decoder json.encoder json.scanner keyword numbers operator re re._casefix
    re._compiler re._constants re._parser reprlib sre_compile statistics string textwrap types typing _py_abc numpy
    numpy.linalg numpy.linalg._linalg numpy.linalg.linalg numpy.fft numpy.fft._pocketfft numpy.matrixlib.defmatrix
""")
_NUMPY_MODULES = _names("""
    _methods arrayprint fromnumeric function_base getlimits multiarray numeric numerictypes overrides shape_base umath
    einsumfunc _dtype _type_aliases _internal index_tricks stride_tricks twodim_base type_check ufunclike nanfunctions
    arraysetops histograms arraypad polynomial _arraysetops_impl _function_base_impl _histograms_impl _index_tricks_impl
    _nanfunctions_impl _arraypad_impl _polynomial_impl _shape_base_impl _stride_tricks_impl _twodim_base_impl
    _type_check_impl _ufunclike_impl _scimath_impl mixins array_utils _array_utils_impl _utils
""")
_PARTS = {  # classes and functions of other modules
    "inspect": ("Signature", "Parameter", "BoundArguments"), "os": ("_Environ", "_createenviron"),
}
Builtin = BuiltinFunctionType | MethodDescriptorType | WrapperDescriptorType | MethodWrapperType | ClassMethodDescriptorType


def is_known_function(function: object) -> bool:
    """Whether a C function returns equal results for equal arguments, and affects only these.

    >>> import math, time
    >>> [is_known_function(f) for f in (math.sqrt, [].append, len, time.time, print, open)]
    [True, True, True, False, False, False]
    """
    name = getattr(function, "__name__", "")
    owner = getattr(function, "__objclass__", None) or getattr(function, "__self__", None)
    if owner is None or isinstance(owner, ModuleType):
        module = str(getattr(function, "__module__", None) or getattr(owner, "__name__", ""))
        return module in _WHOLE or name in _FUNCTIONS.get(module, ())
    if isinstance(function, WrapperDescriptorType | MethodWrapperType):  # operators of a known type
        return True
    if name == "__new__" and isinstance(owner, type):
        return unknown_base(owner) is None
    kind = owner if isinstance(owner, type) else type(owner)
    for base in kind.__mro__:
        if name in vars(base) and not isinstance(vars(base)[name], FunctionType):  # which may call it by `super()`
            known = _METHODS.get(base, frozenset()) if not issubclass(base, BaseException) else _ALL
            return known is _ALL or name in known
    return isinstance(owner, type) and name in vars(type) and name in _METHODS[type]


def is_known_module(name: str, qualname: str = "") -> bool:
    """Whether Python code of this qualified name, or all of a module of the standard library or of NumPy's, is a function of
    its arguments.

    >>> [is_known_module(name) for name in ("functools", "numpy.lib.stride_tricks", "random", "os", "numpy.random")]
    [True, True, False, False, False]
    """
    package, _, last = name.rpartition(".")
    return name in _MODULES or (package in ("numpy.core", "numpy._core", "numpy.lib") and last in _NUMPY_MODULES) or (
        name.startswith("namedtuple_")) or qualname.partition(".")[0] in _PARTS.get(name, ())
