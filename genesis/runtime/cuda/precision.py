"""How exact products of float32 are on GPUs: as IEEE says, unless a program gives that up for speed."""

from __future__ import annotations

__all__ = ["matmul"]


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
