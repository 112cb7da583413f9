"""Classes of named tuples, Python's and C's, as `torch.utils._pytree` tells them from other tuples."""

from __future__ import annotations

from typing import Any


def is_namedtuple_class(cls: type) -> bool:
    """Whether it is a class of named tuples."""
    return isinstance(cls, type) and issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple) and all(
        callable(getattr(cls, name, None)) for name in ("_make", "_asdict"))


def is_structseq_class(cls: type) -> bool:
    """Whether it is a class of C's named tuples, such as `time.struct_time`."""
    counts = "n_fields", "n_sequence_fields", "n_unnamed_fields"
    return isinstance(cls, type) and cls.__bases__ == (tuple,) and all(isinstance(getattr(cls, n, None), int) for n in counts)


def is_namedtuple(obj: Any) -> bool:
    """Whether it is a named tuple, or a class of them."""
    return is_namedtuple_class(_class_of(obj))


def is_structseq(obj: Any) -> bool:
    """Whether it is one of C's named tuples, or a class of them."""
    return is_structseq_class(_class_of(obj))


def is_namedtuple_instance(obj: object) -> bool:
    """Whether it is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_structseq_instance(obj: object) -> bool:
    """Whether it is one of C's named tuples."""
    return is_structseq_class(type(obj))


def _class_of(obj: Any) -> type:
    return obj if isinstance(obj, type) else type(obj)


_is_namedtuple_instance = is_namedtuple_instance
