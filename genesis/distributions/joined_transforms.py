"""Different transforms of the parts of a tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from genesis.distributions import constraints
from genesis.distributions.transform import Transform
from genesis.distributions.utils import formula, sum_rightmost
from genesis.functions.methods.table import functions_of
from genesis.tensor.handle import Tensor

stack, cat = functions_of("stack", "cat")


class _Joined(Transform):
    """Transforms of parts along `dim`."""

    transforms: list[Transform]

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.transforms, self.dim = [t.with_cache(cache_size) if cache_size else t for t in tseq], dim

    bijective = formula(lambda t: all([part.bijective for part in t.transforms]))

    def _parts(self, z: Tensor) -> list[Tensor]:
        raise NotImplementedError

    def _joined(self, parts: Sequence[Tensor]) -> Tensor:
        raise NotImplementedError

    def _mapped(self, z: Tensor, turn: Callable[[Transform, Tensor], Tensor]) -> Tensor:
        return self._joined([turn(t, part) for t, part in zip(self.transforms, self._parts(z), strict=True)])

    def _call(self, x: Tensor) -> Tensor: return self._mapped(x, lambda t, part: t(part))
    def _inverse(self, y: Tensor) -> Tensor: return self._mapped(y, lambda t, part: t.inv(part))


class CatTransform(_Joined):
    """Transforms of the parts along `dim` that have the extents `lengths`, by default 1 each.

    >>> d = genesis.distributions
    >>> d.CatTransform([d.ExpTransform(), d.identity_transform], dim=0, lengths=[1, 2])(genesis.zeros(3))
    tensor([1., 0., 0.])
    """

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)

    event_dim = formula(lambda t: max([part.event_dim for part in t.transforms]))

    @property
    def length(self) -> int:
        """The extent of the whole."""
        return sum(self.lengths)

    domain = formula(lambda t: constraints.cat([part.domain for part in t.transforms], t.dim, t.lengths))
    codomain = formula(lambda t: constraints.cat([part.codomain for part in t.transforms], t.dim, t.lengths))

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, z: Tensor) -> list[Tensor]:
        starts = [sum(self.lengths[:i]) for i in range(len(self.lengths))]
        return [z.narrow(self.dim, begin, length) for begin, length in zip(starts, self.lengths, strict=True)]

    def _joined(self, parts: Sequence[Tensor]) -> Tensor:
        return cat(parts, self.dim)  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = [sum_rightmost(t.log_abs_det_jacobian(a, b), self.event_dim - t.event_dim)
                 for t, a, b in zip(self.transforms, self._parts(x), self._parts(y), strict=True)]
        dim = self.dim - x.ndim if self.dim >= 0 else self.dim
        if dim + self.event_dim < 0:
            return cat(terms, dim + self.event_dim)  # type: ignore[no-any-return]
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total  # type: ignore[no-any-return]


class StackTransform(_Joined):
    """Transforms of the slices along `dim`, one for each."""

    domain = formula(lambda t: constraints.stack([part.domain for part in t.transforms], t.dim))
    codomain = formula(lambda t: constraints.stack([part.codomain for part in t.transforms], t.dim))

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _parts(self, z: Tensor) -> list[Tensor]: return [z.select(self.dim, i) for i in range(z.shape[self.dim])]

    def _joined(self, parts: Sequence[Tensor]) -> Tensor:
        return stack(parts, self.dim)  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._parts(x), self._parts(y), strict=True)
        return stack([t.log_abs_det_jacobian(a, b) for t, a, b in parts], self.dim)  # type: ignore[no-any-return]
