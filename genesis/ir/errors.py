"""Errors that are both Python's natural class and PyTorch's RuntimeError, so that `except` clauses for either catch them."""

from __future__ import annotations

from typing import TypeVar

import numpy as np


class ArgumentError(ValueError, RuntimeError):
    """An invalid argument value, shape or count."""


class ArgumentTypeError(TypeError, RuntimeError):
    """An invalid argument dtype or class."""


class OutOfRangeError(IndexError, RuntimeError):
    """An index or axis out of range."""


class OutOfMemoryError(RuntimeError, MemoryError):
    """A tensor larger than the memory that is left."""


class FormError(ArgumentError, AssertionError):
    """An invalid argument that PyTorch checks by an assertion: RuntimeError, ValueError and AssertionError."""


class NoTensorError(ArgumentTypeError):
    """Numbers alone where an operation takes a tensor among its operands."""


class IndexTypeError(ArgumentTypeError, OutOfRangeError):
    """An object that cannot be an index: TypeError and IndexError."""


class FormOfAxesError(ArgumentError, IndexError):
    """Mismatched axes or indices: ValueError and IndexError."""


class DataError(ArgumentTypeError, ValueError):
    """Python data that cannot be converted to a dtype: TypeError and ValueError."""


class UnknownModeError(ArgumentError, NotImplementedError):
    """An unknown mode: ValueError and NotImplementedError."""


class FolderError(FileNotFoundError, RuntimeError):
    """The folder of a file to be written does not exist."""


class EmptyError(ArgumentError, IndexError):
    """No elements: ValueError and IndexError."""


class UnsupportedTypeError(ArgumentTypeError, NotImplementedError):
    """A dtype that the operation does not support: TypeError and NotImplementedError, which is a RuntimeError."""


class DivisorError(ZeroDivisionError, RuntimeError):
    """An integer division by 0."""


class SingularError(np.linalg.LinAlgError, RuntimeError):
    """A matrix without an inverse or without the requested factors."""


PLAIN: dict[type[BaseException], type[BaseException]] = {
    ValueError: ArgumentError, TypeError: ArgumentTypeError, IndexError: OutOfRangeError, np.linalg.LinAlgError: SingularError,
}


E = TypeVar("E", bound=BaseException)


def also_runtime_error(problem: E) -> E:
    """The error as a subclass that is also a RuntimeError, if it is of Python's own class; otherwise itself.

    >>> isinstance(also_runtime_error(ValueError("shape")), ValueError | RuntimeError)
    True
    """
    kind = PLAIN.get(type(problem))
    return problem if kind is None else kind(*problem.args).with_traceback(problem.__traceback__)  # type: ignore[return-value]
