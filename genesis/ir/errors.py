"""Errors that are PyTorch's RuntimeError besides what Python calls them: `except` clauses written for either catch them."""

from __future__ import annotations

from typing import TypeVar

import numpy as np


class ArgumentError(ValueError, RuntimeError):
    """An argument's value, shape or number does not fit."""


class ArgumentTypeError(TypeError, RuntimeError):
    """An argument's dtype or class does not fit."""


class OutOfRangeError(IndexError, RuntimeError):
    """An index, or a number of an axis, is out of range."""


class FormError(ArgumentError, AssertionError):
    """An argument that PyTorch finds by an assertion: RuntimeError, ValueError and AssertionError."""


class IndexTypeError(ArgumentTypeError, OutOfRangeError):
    """What is given as an index cannot be one: TypeError and IndexError."""


class FormOfAxesError(ArgumentError, IndexError):
    """Axes or indices do not fit each other: ValueError and IndexError."""


class DataError(ArgumentTypeError, ValueError):
    """Python data that is no number of a dtype: TypeError and ValueError."""


class UnknownModeError(ArgumentError, NotImplementedError):
    """A mode that an operation does not have: ValueError and NotImplementedError."""


class FolderError(FileNotFoundError, RuntimeError):
    """The folder of a file that is to be written does not exist."""


class EmptyError(ArgumentError, IndexError):
    """There is no element to find: ValueError and IndexError."""


class UnsupportedTypeError(ArgumentTypeError, NotImplementedError):
    """An operation has no meaning for the dtype: TypeError and NotImplementedError, which is a RuntimeError."""


class DivisorError(ZeroDivisionError, RuntimeError):
    """An integer is divided by 0."""


class SingularError(np.linalg.LinAlgError, RuntimeError):
    """A matrix has no inverse, or not the factors that were asked for."""


PLAIN: dict[type[BaseException], type[BaseException]] = {
    ValueError: ArgumentError, TypeError: ArgumentTypeError, IndexError: OutOfRangeError, np.linalg.LinAlgError: SingularError,
}


E = TypeVar("E", bound=BaseException)


def also_runtime_error(problem: E) -> E:
    """The error as one that is a RuntimeError too, if it is of Python's own class; else itself.

    >>> isinstance(also_runtime_error(ValueError("shape")), ValueError | RuntimeError)
    True
    """
    kind = PLAIN.get(type(problem))
    return problem if kind is None else kind(*problem.args).with_traceback(problem.__traceback__)  # type: ignore[return-value]
