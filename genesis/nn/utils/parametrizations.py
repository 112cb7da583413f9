"""Parametrizations of weights: by length and direction, by their largest singular value, by orthogonal matrices."""

from __future__ import annotations

from typing import Any

from genesis.functions.creation import zeros_like
from genesis.functions.ranges import eye
from genesis.functions.selection import where
from genesis.ir.dtypes import float16, float32, float64
from genesis.ir.shapes import normalize_axis
from genesis.nn import functional
from genesis.nn.convolution import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from genesis.nn.module import Module
from genesis.nn.utils import parametrize
from genesis.ops.registry import OPERATIONS
from genesis.random import randn
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import write
from genesis.tensor.views import detach
from genesis.tracing.state import grad_mode

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]
__dir__ = __all__.copy

MAPS = ("matrix_exp", "cayley", "householder")
EPSILON = {float16: 2.0**-10, float32: 2.0**-23, float64: 2.0**-52}


# ---- length and direction ----
class _WeightNorm(Module):
    """g * v / |v|, with a length for each index of an axis, or one (`dim` -1)."""

    def __init__(self, dim: int | None = 0) -> None:
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        """The weight of its lengths and directions."""
        return weight_v * (weight_g / norm_except_dim(weight_v, dim=self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The lengths and directions of a weight."""
        return norm_except_dim(weight, dim=self.dim), weight


def norm_except_dim(v: Tensor, pow: float = 2.0, dim: int = 0) -> Tensor:
    """The norms over all axes but `dim`, which keep their position; over all axes, if `dim` is -1."""
    if dim == -1:
        return call(OPERATIONS["vector_norm"], (v, pow))
    own = normalize_axis("norm_except_dim", dim, v.ndim)
    axes = tuple(axis for axis in range(v.ndim) if axis != own)
    return call(OPERATIONS["vector_norm"], (v, pow, axes, True)) if axes else v.abs()


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Learn the length and the direction of a weight apart: g * v / |v| (Salimans and Kingma, 2016). Returns the module.

    Args:
        module: whose parameter `name` is meant.
        dim: the axis each of whose parts has a length of its own; None for one length of all.

    State dicts of `nn.utils.weight_norm` can be loaded too.

    >>> layer = weight_norm(genesis.nn.Linear(3, 2))
    >>> [(name, p.shape) for name, p in layer.named_parameters()]
    [('bias', (2,)), ('parametrizations.weight.original0', (2, 1)), ('parametrizations.weight.original1', (2, 3))]
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(module: Module, state: dict[str, Any], prefix: str, *others: object) -> None:
        if f"{prefix}{name}_g" in state and f"{prefix}{name}_v" in state:
            for number, end in enumerate("gv"):
                state[f"{prefix}parametrizations.{name}.original{number}"] = state.pop(f"{prefix}{name}_{end}")

    module.register_load_state_dict_pre_hook(rename)
    return module


# ---- the largest singular value ----
class _SpectralNorm(Module):
    """A weight divided by its largest singular value, which steps of the power method find."""

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(f"spectral_norm: dim is {dim} of a weight with shape {weight.shape}")
        if n_power_iterations <= 0:
            raise ValueError(f"spectral_norm: n_power_iterations is {n_power_iterations}; want 1 or more")
        self.dim = dim if dim >= 0 else dim + weight.ndim
        self.eps = eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight, self.dim)
            u, v = unit_vectors(matrix, eps)
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)
            power_method(detach(matrix), u, v, 15, eps)

    def forward(self, weight: Tensor) -> Tensor:
        """The weight, divided; in training mode after further steps."""
        if weight.ndim == 1:
            return functional.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            power_method(detach(matrix), self._u, self._v, self.n_power_iterations, self.eps)
        return weight / singular_value(matrix, self._u, self._v)

    def right_inverse(self, value: Tensor) -> Tensor:
        """The value itself."""
        return value


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """The weight as a matrix whose rows are the indices of axis `dim`."""
    if dim:
        weight = weight.permute(dim, *[axis for axis in range(weight.ndim) if axis != dim])
    return weight.reshape(weight.shape[0], -1)


def unit_vectors(matrix: Tensor, eps: float) -> list[Tensor]:
    """Random vectors of length 1, from which the power method starts: one of a matrix's columns, one of its rows."""
    with grad_mode(False):
        return [functional.normalize(randn(n, dtype=matrix.dtype, device=matrix.device), dim=0, eps=eps) for n in matrix.shape]


def power_method(matrix: Tensor, u: Tensor, v: Tensor, steps: int, eps: float) -> None:
    """Turn u, and then v, towards the singular vectors of the largest singular value, in place."""
    with grad_mode(False):
        new_u, new_v = u, v
        for _ in range(steps):
            new_u = functional.normalize(matrix @ new_v, dim=0, eps=eps)
            new_v = functional.normalize(matrix.T @ new_u, dim=0, eps=eps)
        write(u, new_u)
        write(v, new_v)


def singular_value(matrix: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """u^T M v. The vectors are copied, as later steps write to them."""
    return (u.clone() * (matrix @ v.clone())).sum()


def output_axis(module: Module) -> int:
    """The axis of a layer's weight that counts its outputs."""
    return 1 if isinstance(module, ConvTranspose1d | ConvTranspose2d | ConvTranspose3d) else 0


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value (Miyato et al., 2018). Returns the module.

    Args:
        module: whose parameter `name` is meant.
        n_power_iterations: steps of the power method at each reading in training mode.
        eps: the least length that vectors are divided by.
        dim: the axis of the outputs, whose others are taken together; 1 for transposed convolutions, else 0.

    Raises ValueError for no such tensor and fewer than one step, IndexError for another axis.

    >>> layer = spectral_norm(genesis.nn.Linear(4, 4)).eval()
    >>> 0.8 < genesis.linalg.matrix_norm(layer.weight, 2).item() < 1.2
    True
    """
    weight = _tensor_of(module, name)
    dim = output_axis(module) if dim is None else dim
    return parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


def _tensor_of(module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"{type(module).__name__} has no parameter or buffer {name!r}")
    return weight


# ---- orthogonal matrices ----
class _Orthogonal(Module):
    """A matrix with orthonormal columns, or rows, of a matrix with none in particular."""

    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True) -> None:
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        """The orthogonal matrix of the parameters `X`."""
        wide = X.shape[-2] < X.shape[-1]
        tall = X.mT if wide else X
        q = self._reflected(tall) if self.orthogonal_map == "householder" else self._turned(tall)
        if (base := vars(self).get("base")) is not None:
            q = base @ q
        return q.mT if wide else q

    def _turned(self, x: Tensor) -> Tensor:
        """By the exponential of a skew-Hermitian matrix, or its Cayley transform (I + A/2) (I - A/2)^-1."""
        rows, columns = x.shape[-2:]
        lower = x.tril()
        if rows != columns:
            lower = functional.pad(lower, (0, rows - columns))
        a = lower - lower.mH
        if self.orthogonal_map == "matrix_exp":
            q = call(OPERATIONS["matrix_exp"], (a,))
        else:
            one = eye(rows, dtype=a.dtype, device=a.device)
            q = call(OPERATIONS["solve"], (one - 0.5 * a, one + 0.5 * a))
        return q[..., :columns]

    def _reflected(self, x: Tensor) -> Tensor:
        """By Householder's reflections, whose vectors are below the diagonal; the diagonal has the signs."""
        below = x.tril(-1)
        factors = 2.0 / (1.0 + (below * below).sum(-2))
        q = call(OPERATIONS["orgqr"], (below, factors))
        return q * detach(x).diagonal(dim1=-2, dim2=-1).trunc().unsqueeze(-2)

    def right_inverse(self, Q: Tensor) -> Tensor:
        """Parameters whose matrix is `Q`, or the orthogonal one of its QR decomposition."""
        if Q.shape != self.shape:
            raise ValueError(f"orthogonal: a matrix of shape {Q.shape}; want {self.shape}")
        with grad_mode(False):
            wide = Q.shape[-2] < Q.shape[-1]
            tall = Q.mT if wide else Q
            if "base" not in vars(self):
                stored = self._reflections(tall)
                return stored.mT if wide else stored
            rows, columns = tall.shape[-2:]
            if rows != columns:
                noise = randn(*tall.shape[:-2], rows, rows - columns, dtype=tall.dtype, device=tall.device)
                tall = call(OPERATIONS["cat"], ([tall, noise], -1))
            self.base = tall.clone() if rows == columns and _is_orthogonal(tall) else _orthogonalized(tall)
            one = eye(*Q.shape[-2:], dtype=Q.dtype, device=Q.device)
            return zeros_like(Q) - one  # minus one: of reflections it makes the identity

    def _reflections(self, q: Tensor) -> Tensor:
        """The reflections that make `q`, with the signs in the diagonal."""
        if self.orthogonal_map != "householder":
            raise NotImplementedError(f"{self.orthogonal_map} cannot be assigned to without use_trivialization")
        stored, factors = call(OPERATIONS["geqrf"], (q,))
        signs = stored.diagonal(dim1=-2, dim2=-1).sign()
        signs = where(factors == 0, -signs, signs)
        columns = eye(*q.shape[-2:], dtype=q.dtype, device=q.device)
        return where(columns != 0, signs.unsqueeze(-2), stored)


def _is_orthogonal(q: Tensor) -> bool:
    one = eye(q.shape[-1], dtype=q.dtype, device=q.device)
    return bool(((q.mH @ q - one).abs() <= 10 * q.shape[-2] * EPSILON.get(one.abs().dtype, 2.0**-7) + 1e-5 * one.abs()).all())


def _orthogonalized(a: Tensor) -> Tensor:
    """The Q of A = QR with a diagonal of R that is not negative."""
    q, r = call(OPERATIONS["qr"], (a,))
    signs = r.diagonal(dim1=-2, dim2=-1).sgn()
    return q * where(signs == 0, 1.0, signs).unsqueeze(-2)


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keep a matrix, or each of several, orthogonal: with orthonormal columns, or rows if it has more columns than rows.

    Args:
        module: whose parameter `name`, (.., m, n), is meant.
        orthogonal_map: "matrix_exp" and "cayley" of a skew-Hermitian matrix, or "householder", reflections of real ones; the
            first for square and complex matrices, the last for others, if None.
        use_trivialization: multiply with a fixed matrix, so that any orthogonal one can be begun with (Lezcano-Casado, 2019).

    The first value is that of the tensor or, if this is not orthogonal, the Q of its QR decomposition. Returns the module.
    Raises ValueError for no such tensor, less than two axes and another map.

    >>> q = orthogonal(genesis.nn.Linear(3, 4)).weight
    >>> bool(((q.T @ q - genesis.eye(3)).abs() < 1e-5).all())
    True
    """
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(f"orthogonal: a tensor of shape {weight.shape}; want matrices, (.., m, n)")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.shape[-2] == weight.shape[-1] or weight.is_complex() else "householder"
    if orthogonal_map == "householder" and weight.is_complex():
        raise ValueError("orthogonal: reflections are for real matrices; want orthogonal_map 'matrix_exp' or 'cayley'")
    if orthogonal_map not in MAPS:
        raise ValueError(f"orthogonal: orthogonal_map is {orthogonal_map!r}; want 'matrix_exp', 'cayley' or 'householder'")
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)


NOT_REPLAYABLE = ("weight_norm", "spectral_norm", "orthogonal", "right_inverse")
