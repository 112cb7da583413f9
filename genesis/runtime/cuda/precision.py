"""The precision of float32 products on GPUs: IEEE's, unless a program chooses TF32 for speed."""

from __future__ import annotations

__all__ = ["get_float32_matmul_precision", "matmul", "set_float32_matmul_precision"]


class _Matmul:
    """Settings of matrix products."""

    __slots__ = ("_allow_tf32",)

    def __init__(self) -> None:
        self._allow_tf32 = False

    @property
    def allow_tf32(self) -> bool:
        """Whether float32 operands may be rounded to TF32, which has 10 bits after the point: faster on tensor cores."""
        return self._allow_tf32

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        if not isinstance(allowed, bool):
            raise TypeError(f"allow_tf32: wants True or False, got {type(allowed).__name__} {allowed!r}")
        self._allow_tf32 = allowed


matmul = _Matmul()


def set_float32_matmul_precision(precision: str) -> None:
    """The precision of float32 products on GPUs: "highest" is IEEE's, "high" and "medium" may round to TF32.

    Raises ValueError for another word.

    >>> import genesis
    >>> genesis.set_float32_matmul_precision("high")
    >>> genesis.backends.cuda.matmul.allow_tf32
    True
    >>> genesis.set_float32_matmul_precision("highest")
    """
    if precision not in ("highest", "high", "medium"):
        raise ValueError(f'set_float32_matmul_precision: wants "highest", "high" or "medium", got {precision!r}')
    matmul.allow_tf32 = precision != "highest"


def get_float32_matmul_precision() -> str:
    """The setting of `set_float32_matmul_precision`: "highest" or, where products may round to TF32, "high"."""
    return "high" if matmul.allow_tf32 else "highest"
