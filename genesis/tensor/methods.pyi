# Written by tools/stubs.py from the operation table: do not edit.

import numpy as np
from builtins import bool as Bool, float as Float, int as Int, type as Type
from collections.abc import Callable, Iterator, Sequence
from numpy._typing._dtype_like import _DTypeDict, _HasDType, _HasNumPyDType
from numpy.typing import ArrayLike
from types import ModuleType
from typing import Any, Literal, NamedTuple, Self, SupportsIndex, overload
from genesis.autograd.graph_view import GradientNode
from genesis.autograd.hooks import RemovableHandle
from genesis.functions.counting import Histogram, Mode
from genesis.functions.indexing import Index
from genesis.functions.methods.inspection import ElementCount
from genesis.functions.methods.storage import TypedStorage, UntypedStorage
from genesis.ir.annotations import Extents
from genesis.ir.dtypes import DType
from genesis.runtime.devices import Device, DeviceLike
from genesis.runtime.rng import Generator
from genesis.sparse.sparse_tensor import SparseTensor
from genesis.tensor.handle import Operand, Tensor

class Cholesky(NamedTuple):
    """The result of `cholesky_ex`."""

    L: Tensor
    info: Tensor

class Eigen(NamedTuple):
    """The result of `eigh`."""

    eigenvalues: Tensor
    eigenvectors: Tensor

class Extrema(NamedTuple):
    """The result of `aminmax`."""

    min: Tensor
    max: Tensor

class Extremum(NamedTuple):
    """The result of `max` and `min` along one axis."""

    values: Tensor
    indices: Tensor

class Factored(NamedTuple):
    """The result of `lu_factor`."""

    LU: Tensor
    pivots: Tensor

class FactoredInfo(NamedTuple):
    """The result of `lu_factor_ex`."""

    LU: Tensor
    pivots: Tensor
    info: Tensor

class Indefinite(NamedTuple):
    """The result of `ldl_factor`."""

    LD: Tensor
    pivots: Tensor

class IndefiniteInfo(NamedTuple):
    """The result of `ldl_factor_ex`."""

    LD: Tensor
    pivots: Tensor
    info: Tensor

class Inverse(NamedTuple):
    """The result of `inv_ex`."""

    inverse: Tensor
    info: Tensor

class PLU(NamedTuple):
    """The result of `linalg.lu` and `lu_unpack`."""

    P: Tensor
    L: Tensor
    U: Tensor

class Parts(NamedTuple):
    """The result of `frexp`."""

    mantissa: Tensor
    exponent: Tensor

class QR(NamedTuple):
    """The result of `qr`."""

    Q: Tensor
    R: Tensor

class Reflected(NamedTuple):
    """The result of `geqrf`."""

    a: Tensor
    tau: Tensor

class SVD(NamedTuple):
    """The result of `linalg.svd`."""

    U: Tensor
    S: Tensor
    Vh: Tensor

class SignAndLog(NamedTuple):
    """The result of `slogdet`."""

    sign: Tensor
    logabsdet: Tensor

class Solved(NamedTuple):
    """The result of `solve_ex`."""

    result: Tensor
    info: Tensor

class Sorted(NamedTuple):
    """Values in order, and the positions that they came from."""

    values: Tensor
    indices: Tensor

class Transposed(NamedTuple):
    """The result of `svd`."""

    U: Tensor
    S: Tensor
    V: Tensor

class Triangular(NamedTuple):
    """The result of `triangular_solve`."""

    solution: Tensor
    cloned_coefficient: Tensor

class Methods:
    """The methods of Tensor."""

    @property
    def H(self) -> Tensor:
        """The conjugate transpose of a matrix."""
    @property
    def T(self) -> Tensor:
        """The axes in reverse order."""
    def __abs__(self) -> Tensor: ...
    def __add__(self, other: Operand, /) -> Tensor: ...
    def __and__(self, other: Operand, /) -> Tensor: ...
    def __array__(
        self,
        dtype: Type[Any] | np.dtype[Any] | _HasDType[np.dtype[Any]] | _HasNumPyDType[np.dtype[Any]] | tuple[Any, Any] | list[Any] | _DTypeDict | str | None = None,
        copy: Bool | None = None,
    ) -> np.ndarray[Any, Any]: ...
    @property
    def __array_interface__(self) -> dict[str, Any]:
        """The tensor's host memory, for other libraries. Raises AttributeError on other devices."""
    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """The array API's functions for this array. Raises ValueError for an unsupported version."""
    def __array_wrap__(self, array: np.ndarray[Any, Any], context: object = None, return_scalar: Bool = False) -> Tensor:
        """Converts the results of NumPy's functions to tensors."""
    def __bool__(self) -> Bool: ...
    def __complex__(self) -> complex: ...
    def __contains__(self, element: object) -> Bool: ...
    def __copy__(self) -> Tensor:
        """`copy.copy`: a leaf that shares the tensor's storage, with its attributes but for `grad`."""
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The tensor's GPU memory, for other libraries. Raises AttributeError on other devices."""
    def __deepcopy__(self, memo: dict[Int, object]) -> Tensor: ...
    def __dlpack__(
        self, *, stream: Int | None = None, max_version: tuple[Int, Int] | None = None,
        dl_device: tuple[Int, Int] | None = None, copy: Bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[Int, Int]: ...
    def __eq__(self, other: object, /) -> Tensor: ...  # type: ignore[override]
    def __float__(self) -> Float: ...
    def __floordiv__(self, other: Operand, /) -> Tensor: ...
    def __format__(self, specification: str) -> str: ...
    def __ge__(self, other: Operand, /) -> Tensor: ...
    def __getitem__(self, index: Index) -> Tensor: ...
    def __gt__(self, other: Operand, /) -> Tensor: ...
    def __hash__(self) -> Int: ...
    def __iadd__(self, other: Operand, /) -> Self: ...
    def __iand__(self, other: Operand, /) -> Self: ...
    def __ifloordiv__(self, other: Operand, /) -> Self: ...
    def __ilshift__(self, other: Operand, /) -> Self: ...
    def __imod__(self, other: Operand, /) -> Self: ...
    def __imul__(self, other: Operand, /) -> Self: ...
    def __index__(self) -> Int: ...
    def __init__(
        self, array: object, *options: str | Device | None | DType | Bool, device: DeviceLike = None,
        dtype: DType | None = None, requires_grad: Bool = False, **parameters: object,
    ) -> None:
        """A tensor with a copy of `array`: nested lists, numbers, a NumPy array or a tensor."""
    def __int__(self) -> Int: ...
    def __invert__(self) -> Tensor: ...
    def __ior__(self, other: Operand, /) -> Self: ...
    def __ipow__(self, other: Operand, /) -> Self: ...
    def __irshift__(self, other: Operand, /) -> Self: ...
    def __isub__(self, other: Operand, /) -> Self: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __itruediv__(self, other: Operand, /) -> Self: ...
    def __ixor__(self, other: Operand, /) -> Self: ...
    def __le__(self, other: Operand, /) -> Tensor: ...
    def __len__(self) -> Int: ...
    def __lshift__(self, other: Operand, /) -> Tensor: ...
    def __lt__(self, other: Operand, /) -> Tensor: ...
    def __matmul__(self, other: Operand, /) -> Tensor: ...
    def __mod__(self, other: Operand, /) -> Tensor: ...
    def __mul__(self, other: Operand, /) -> Tensor: ...
    def __ne__(self, other: object, /) -> Tensor: ...  # type: ignore[override]
    def __neg__(self) -> Tensor: ...
    def __or__(self, other: Operand, /) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __pow__(self, other: Operand, /) -> Tensor: ...
    def __radd__(self, other: Operand, /) -> Tensor: ...
    def __rand__(self, other: Operand, /) -> Tensor: ...
    def __rdiv__(self, other: Operand, /) -> Tensor: ...
    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]: ...
    def __repr__(self) -> str: ...
    def __reversed__(self) -> Tensor:
        """The tensor with its first axis walked backwards."""
    def __rfloordiv__(self, other: Operand, /) -> Tensor: ...
    def __rlshift__(self, other: Operand, /) -> Tensor: ...
    def __rmatmul__(self, other: Operand, /) -> Tensor: ...
    def __rmod__(self, other: Operand, /) -> Tensor: ...
    def __rmul__(self, other: Operand, /) -> Tensor: ...
    def __ror__(self, other: Operand, /) -> Tensor: ...
    def __rpow__(self, other: Operand, /) -> Tensor: ...
    def __rrshift__(self, other: Operand, /) -> Tensor: ...
    def __rshift__(self, other: Operand, /) -> Tensor: ...
    def __rsub__(self, other: Operand, /) -> Tensor: ...
    def __rtruediv__(self, other: Operand, /) -> Tensor: ...
    def __rxor__(self, other: Operand, /) -> Tensor: ...
    def __setitem__(
        self, index: Index, value: Tensor | Bool | Int | Float | complex | np.generic | np.ndarray[Any, Any] | list[Any],
    ) -> None: ...
    def __sub__(self, other: Operand, /) -> Tensor: ...
    def __truediv__(self, other: Operand, /) -> Tensor: ...
    def __xor__(self, other: Operand, /) -> Tensor: ...
    def abs(self) -> Tensor:
        """As `numpy.absolute`."""
    def abs_(self) -> Self:
        """`abs`, in place."""
    def absolute(self) -> Tensor:
        """As `numpy.absolute`."""
    def absolute_(self) -> Self:
        """`abs`, in place."""
    def acos(self) -> Tensor:
        """As `numpy.arccos`."""
    def acos_(self) -> Self:
        """`acos`, in place."""
    def acosh(self) -> Tensor:
        """As `numpy.arccosh`."""
    def acosh_(self) -> Self:
        """`acosh`, in place."""
    def add(self, other: Operand, *, alpha: Operand = 1) -> Tensor:
        """`input + alpha * other`."""
    def add_(self, other: Operand, *, alpha: Operand = 1) -> Self:
        """`add`, in place."""
    def addbmm(self, batch1: Operand, batch2: Operand, *, beta: Float = 1, alpha: Float = 1) -> Tensor:
        """beta * input + alpha * the sum of bmm(batch1, batch2) over the batch."""
    def addbmm_(self, batch1: Operand, batch2: Operand, *, beta: Float = 1, alpha: Float = 1) -> Self:
        """`addbmm`, in place."""
    def addcdiv(self, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Tensor:
        """`input + value * tensor1 / tensor2`. Raises TypeError for integers."""
    def addcdiv_(self, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Self:
        """`addcdiv`, in place."""
    def addcmul(self, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Tensor:
        """`input + value * tensor1 * tensor2`."""
    def addcmul_(self, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Self:
        """`addcmul`, in place."""
    def addmm(self, mat1: Operand, mat2: Operand, *, beta: Float = 1, alpha: Float = 1) -> Tensor:
        """beta * input + alpha * mat1 @ mat2, for matrices."""
    def addmm_(self, mat1: Operand, mat2: Operand, *, beta: Float = 1, alpha: Float = 1) -> Self:
        """`addmm`, in place."""
    def addmv(self, mat: Operand, vec: Operand, *, beta: Float = 1, alpha: Float = 1) -> Tensor:
        """beta * input + alpha * mat @ vec, for a matrix and a vector."""
    def addmv_(self, mat: Operand, vec: Operand, *, beta: Float = 1, alpha: Float = 1) -> Self:
        """`addmv`, in place."""
    def addr(self, vec1: Operand, vec2: Operand, *, beta: Float = 1, alpha: Float = 1) -> Tensor:
        """beta * input + alpha * outer(vec1, vec2)."""
    def addr_(self, vec1: Operand, vec2: Operand, *, beta: Float = 1, alpha: Float = 1) -> Self:
        """`addr`, in place."""
    def adjoint(self) -> Tensor:
        """The conjugate transpose of the last two axes."""
    def all(self, dim: Int | Sequence[Int] | None = None, keepdim: Bool = False) -> Tensor:
        """Whether all elements over `dim` are true."""
    def allclose(self, other: Tensor, rtol: Float = 1e-05, atol: Float = 1e-08, equal_nan: Bool = False) -> Bool:
        """Whether all elements are close in the sense of `isclose`."""
    def amax(self, dim: Int | Sequence[Int] | None = None, keepdim: Bool = False) -> Tensor:
        """The greatest element over `dim` (all axes, if None); NaN wins."""
    def amin(self, dim: Int | Sequence[Int] | None = None, keepdim: Bool = False) -> Tensor:
        """The least element over `dim` (all axes, if None); NaN wins."""
    def aminmax(self, *, dim: Int | None = None, keepdim: Bool = False) -> Extrema:
        """(min, max) over `dim`, or all elements; NaN wins."""
    def angle(self) -> Tensor:
        """The angle of complex numbers, in [-pi, pi]; for real ones 0, pi where x is negative, NaN for NaN."""
    def any(self, dim: Int | Sequence[Int] | None = None, keepdim: Bool = False) -> Tensor:
        """Whether any element over `dim` is true."""
    def apply_(self, callable: Callable[[Bool | Int | Float], Bool | Int | Float]) -> Tensor:
        """Replace each element by `callable(element)`, Python numbers, in place. CPU only, no gradient, slow."""
    def arccos(self) -> Tensor:
        """As `numpy.arccos`."""
    def arccos_(self) -> Self:
        """`acos`, in place."""
    def arccosh(self) -> Tensor:
        """As `numpy.arccosh`."""
    def arccosh_(self) -> Self:
        """`acosh`, in place."""
    def arcsin(self) -> Tensor:
        """As `numpy.arcsin`."""
    def arcsin_(self) -> Self:
        """`asin`, in place."""
    def arcsinh(self) -> Tensor:
        """As `numpy.arcsinh`."""
    def arcsinh_(self) -> Self:
        """`asinh`, in place."""
    def arctan(self) -> Tensor:
        """As `numpy.arctan`."""
    def arctan2(self, other: Operand) -> Tensor:
        """As `numpy.arctan2`."""
    def arctan2_(self, other: Operand) -> Self:
        """`atan2`, in place."""
    def arctan_(self) -> Self:
        """`atan`, in place."""
    def arctanh(self) -> Tensor:
        """As `numpy.arctanh`."""
    def arctanh_(self) -> Self:
        """`atanh`, in place."""
    def argmax(self, dim: Int | None = None, keepdim: Bool = False) -> Tensor:
        """The position of the first greatest element along `dim`, int64; NaN wins."""
    def argmin(self, dim: Int | None = None, keepdim: Bool = False) -> Tensor:
        """The position of the first least element along `dim`, int64; NaN wins."""
    def argsort(self, dim: Int = -1, descending: Bool = False, stable: Bool = False) -> Tensor:
        """The indices that sort along `dim`. Equal elements keep their order; NaN is the greatest."""
    def argwhere(self) -> Tensor:
        """The indices of the nonzero elements, one row each."""
    def as_strided(self, size: Sequence[Int], stride: Sequence[Int], storage_offset: Int | None = None) -> Tensor:
        """A view of the storage of `input`: element (i, j, ..) is at storage_offset + i*stride[0] + j*stride[1] + .."""
    def as_strided_(self, size: Sequence[Int], stride: Sequence[Int], storage_offset: Int | None = None) -> Tensor:
        """`as_strided`, in place: the tensor becomes this view of its storage."""
    def as_strided_scatter(
        self, src: Tensor, size: Sequence[Int], stride: Sequence[Int], storage_offset: Int | None = None,
    ) -> Tensor:
        """A copy of `input` with `src` written at the elements of `as_strided`."""
    def as_subclass(self, cls: Type[Tensor]) -> Tensor:
        """A tensor of class `cls` that shares storage and gradient."""
    def asin(self) -> Tensor:
        """As `numpy.arcsin`."""
    def asin_(self) -> Self:
        """`asin`, in place."""
    def asinh(self) -> Tensor:
        """As `numpy.arcsinh`."""
    def asinh_(self) -> Self:
        """`asinh`, in place."""
    def atan(self) -> Tensor:
        """As `numpy.arctan`."""
    def atan2(self, other: Operand) -> Tensor:
        """As `numpy.arctan2`."""
    def atan2_(self, other: Operand) -> Self:
        """`atan2`, in place."""
    def atan_(self) -> Self:
        """`atan`, in place."""
    def atanh(self) -> Tensor:
        """As `numpy.arctanh`."""
    def atanh_(self) -> Self:
        """`atanh`, in place."""
    def backward(
        self, gradient: Tensor | None = None, retain_graph: Bool | None = None, create_graph: Bool = False,
        inputs: Sequence[Tensor] | None = None, *, strict: Bool | None = None,
    ) -> None:
        """Add the gradients of this tensor to `.grad` of the leaves that it depends on (of `inputs` alone, if given)."""
    def baddbmm(self, batch1: Operand, batch2: Operand, *, beta: Float = 1, alpha: Float = 1) -> Tensor:
        """beta * input + alpha * bmm(batch1, batch2)."""
    def baddbmm_(self, batch1: Operand, batch2: Operand, *, beta: Float = 1, alpha: Float = 1) -> Self:
        """`baddbmm`, in place."""
    def bernoulli(self, p: Float | None = None, *, generator: Generator | None = None) -> Tensor:
        """1 with the probability that each element of `input` gives (with the probability `p`, if given), 0 otherwise."""
    def bernoulli_(self, p: Float | Tensor = 0.5, *, generator: Generator | None = None) -> Tensor:
        """Fill with 1 with probability `p`, a number or a tensor, 0 otherwise."""
    def bfloat16(self, memory_format: object = None) -> Tensor:
        """The tensor as bfloat16."""
    def bincount(self, weights: Tensor | None = None, minlength: Int = 0) -> Tensor:
        """The number of occurrences of 0, 1, .. among the ints `input` (n,); with `weights` (n,), their sums in float64."""
    def bitwise_and(self, other: Operand) -> Tensor:
        """As `numpy.bitwise_and`."""
    def bitwise_and_(self, other: Operand) -> Self:
        """`bitwise_and`, in place."""
    def bitwise_left_shift(self, other: Operand) -> Tensor:
        """As `numpy.left_shift`."""
    def bitwise_left_shift_(self, other: Operand) -> Self:
        """`bitwise_left_shift`, in place."""
    def bitwise_not(self) -> Tensor:
        """As `numpy.invert`."""
    def bitwise_not_(self) -> Self:
        """`bitwise_not`, in place."""
    def bitwise_or(self, other: Operand) -> Tensor:
        """As `numpy.bitwise_or`."""
    def bitwise_or_(self, other: Operand) -> Self:
        """`bitwise_or`, in place."""
    def bitwise_right_shift(self, other: Operand) -> Tensor:
        """As `numpy.right_shift`."""
    def bitwise_right_shift_(self, other: Operand) -> Self:
        """`bitwise_right_shift`, in place."""
    def bitwise_xor(self, other: Operand) -> Tensor:
        """As `numpy.bitwise_xor`."""
    def bitwise_xor_(self, other: Operand) -> Self:
        """`bitwise_xor`, in place."""
    def bmm(self, mat2: Operand) -> Tensor:
        """The products of matrices pair by pair, (b, m, k) and (b, k, n)."""
    def bool(self, memory_format: object = None) -> Tensor:
        """The tensor as bool."""
    def broadcast_to(self, *shape: Extents, size: Int | Sequence[Int] | None = None) -> Tensor:
        """The tensor expanded to `shape`, or `size`."""
    def bucketize(self, boundaries: Operand, *, out_int32: Bool = False, right: Bool = False) -> Tensor:
        """The bucket between ascending `boundaries` (n,) of each element; with `right`, boundaries belong to the next .."""
    def byte(self, memory_format: object = None) -> Tensor:
        """The tensor as uint8."""
    def cauchy_(self, median: Float = 0.0, sigma: Float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with random numbers of the density sigma / (pi * ((x - median)^2 + sigma^2))."""
    def ccol_indices(self) -> Any:
        """Where each column begins, (columns + 1,). Raises ValueError for other tensors."""
    def cdouble(self, memory_format: object = None) -> Tensor:
        """The tensor as complex128."""
    def ceil(self) -> Tensor:
        """As `numpy.ceil`."""
    def ceil_(self) -> Self:
        """`ceil`, in place."""
    def celu(self, alpha: Float = 1.0) -> Tensor:
        """x where positive, alpha * (exp(x / alpha) - 1) elsewhere (Barron, 2017)."""
    def celu_(self, alpha: Float = 1.0) -> Self:
        """`celu`, in place."""
    def cfloat(self, memory_format: object = None) -> Tensor:
        """The tensor as complex64."""
    def chalf(self, memory_format: object = None) -> Tensor:
        """The tensor as complex32."""
    def char(self, memory_format: object = None) -> Tensor:
        """The tensor as int8."""
    def cholesky(self, upper: Bool = False) -> Tensor:
        """The lower triangular L with L @ L.mH = `A`, Hermitian and positive definite (.., n, n); with `upper`, its .."""
    def cholesky_inverse(self, upper: Bool = False) -> Tensor:
        """The inverses of the matrices (.., n, n) whose lower factor `L`, or upper one, `cholesky` gives."""
    def cholesky_solve(self, L: Operand, upper: Bool = False) -> Tensor:
        """The X with `L` @ L.T @ X = `B`, for a factor `L` that `cholesky` gives (with `upper`, L.T @ L)."""
    def chunk(self, chunks: Int, dim: Int = 0) -> tuple[Tensor, ...]:
        """At most `chunks` views of equal extent along `dim` (the last may be smaller)."""
    def clamp(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """`input` clamped to [min, max]; the gradient passes inside, bounds included."""
    def clamp_(self, min: Operand | None = None, max: Operand | None = None) -> Self:
        """`clamp`, in place."""
    def clamp_max(self, max: Operand) -> Tensor:
        """`input`, and `max` where that is less."""
    def clamp_max_(self, max: Operand) -> Self:
        """`clamp_max`, in place."""
    def clamp_min(self, min: Operand) -> Tensor:
        """`input`, and `min` where that is greater."""
    def clamp_min_(self, min: Operand) -> Self:
        """`clamp_min`, in place."""
    def clip(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """`input` clamped to [min, max]; the gradient passes inside, bounds included."""
    def clip_(self, min: Operand | None = None, max: Operand | None = None) -> Self:
        """`clamp`, in place."""
    def clone(self, *, memory_format: object = None) -> Tensor:
        """A copy; gradients flow through it. `memory_format` has no effect."""
    def coalesce(self) -> Any:
        """The tensor with its positions in order, each once. Raises ValueError for other tensors."""
    def col_indices(self) -> Any:
        """The column of each element, or block, (n,). Raises ValueError for other tensors."""
    def conj(self) -> Tensor:
        """The conjugates, lazily, in the tensor's storage; a real tensor itself."""
    def conj_physical(self) -> Tensor:
        """The conjugates; a real tensor itself."""
    def conj_physical_(self) -> Tensor:
        """Conjugate in place; a real tensor stays the same."""
    def const_data_ptr(self) -> Int:
        """`data_ptr()`."""
    def contiguous(self, memory_format: object = None) -> Tensor:
        """The tensor itself if it is row-major, otherwise a copy. `memory_format` has no effect."""
    def copy_(self, source: Tensor, non_blocking: Bool = False) -> Tensor:
        """Write `source`, broadcast and converted, into this tensor."""
    def copysign(self, other: Operand) -> Tensor:
        """As `numpy.copysign`."""
    def copysign_(self, other: Operand) -> Self:
        """`copysign`, in place."""
    def corrcoef(self) -> Tensor:
        """The correlation coefficients of the rows of `input` (variables, observations), within [-1, 1]."""
    def cos(self) -> Tensor:
        """As `numpy.cos`."""
    def cos_(self) -> Self:
        """`cos`, in place."""
    def cosh(self) -> Tensor:
        """As `numpy.cosh`."""
    def cosh_(self) -> Self:
        """`cosh`, in place."""
    def count_nonzero(self, dim: Int | Sequence[Int] | None = None) -> Tensor:
        """The number of nonzero elements over `dim`."""
    def cov(self, *, correction: Int = 1, fweights: Operand | None = None, aweights: Operand | None = None) -> Tensor:
        """The covariances of the rows of `input` (variables, observations), or the variance of a vector."""
    def cpu(self) -> Tensor:
        """The tensor on the first CPU device; itself if it is there already."""
    def cross(self, other: Operand, dim: Int | None = None) -> Tensor:
        """The cross products of vectors of three elements along `dim` (the first axis with three, if None)."""
    def crow_indices(self) -> Any:
        """Where each row begins, (rows + 1,). Raises ValueError for other tensors."""
    def cuda(self, device: DeviceLike = None, non_blocking: Bool = False) -> Tensor:
        """The tensor on a GPU, a device or its number, the first by default; itself if it is there already."""
    def cummax(self, dim: Int) -> Sorted:
        """(values, indices) of the greatest element up to each index of `dim`: of equal ones the last; NaN wins."""
    def cummin(self, dim: Int) -> Sorted:
        """(values, indices) of the least element up to each index of `dim`: of equal ones the last; NaN wins."""
    def cumprod(self, dim: Int, *, dtype: DType | None = None) -> Tensor:
        """The products of the elements up to each one along `dim`. Integers and bools multiply to int64."""
    def cumprod_(self, dim: Int, *, dtype: DType | None = None) -> Self:
        """`cumprod`, in place."""
    def cumsum(self, dim: Int, *, dtype: DType | None = None) -> Tensor:
        """The sums of the elements up to each one along `dim`. Integers and bools sum to int64."""
    def cumsum_(self, dim: Int, *, dtype: DType | None = None) -> Self:
        """`cumsum`, in place."""
    @property
    def data(self) -> Tensor:
        """The tensor without gradient, sharing its storage; assigning to it replaces the values."""
    @data.setter
    def data(self, value: Tensor) -> None: ...
    def data_ptr(self) -> Int:
        """The address of the first element, on the tensor's device; 0 on "meta". The storage stays there from now on."""
    def deg2rad(self) -> Tensor:
        """As `numpy.deg2rad`."""
    def deg2rad_(self) -> Self:
        """`deg2rad`, in place."""
    def dense_dim(self) -> Int:
        """The number of axes that are not sparse."""
    def det(self) -> Tensor:
        """The determinants of matrices (.., n, n)."""
    def detach(self) -> Tensor:
        """A tensor that shares `tensor`'s storage and has no derivation."""
    def detach_(self) -> Tensor:
        """Detach this tensor from the graph, in place: it becomes a leaf. Raises RuntimeError for a view."""
    @property
    def device(self) -> Device:
        """Where the tensor's memory is."""
    def diag(self, diagonal: Int = 0) -> Tensor:
        """The matrix with the vector `input` as its diagonal, or the diagonal of a matrix."""
    def diag_embed(self, offset: Int = 0, dim1: Int = -2, dim2: Int = -1) -> Tensor:
        """Matrices, on the axes `dim1` and `dim2`, with the last axis of `input` as their diagonals and zeros elsewhere."""
    def diagflat(self, offset: Int = 0) -> Tensor:
        """The matrix with all elements of `input`, row by row, as its diagonal."""
    def diagonal(self, offset: Int = 0, dim1: Int = 0, dim2: Int = 1) -> Tensor:
        """The diagonal `offset` above the main one, as the last axis."""
    def diagonal_scatter(self, src: Operand, offset: Int = 0, dim1: Int = 0, dim2: Int = 1) -> Tensor:
        """`input` with `src` on a diagonal, as `diagonal` takes it."""
    def diff(self, n: Int = 1, dim: Int = -1, prepend: Operand | None = None, append: Operand | None = None) -> Tensor:
        """The differences of neighbours along `dim`, taken `n` times; `prepend` and `append` are joined to `input` first."""
    def digamma(self) -> Tensor:
        """The derivative of `lgamma`."""
    def digamma_(self) -> Self:
        """`digamma`, in place."""
    def dim(self) -> Int:
        """The number of axes."""
    def dim_order(self) -> tuple[Int, ...]:
        """The axes from the widest stride to the narrowest."""
    def dist(self, other: Operand, p: Float = 2) -> Tensor:
        """The p-norm of input - other, taken as one vector."""
    def div(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        """`input / other`, also for integers. `rounding_mode` "trunc" rounds towards zero, as C does, "floor" down, as .."""
    def div_(self, other: Operand, *, rounding_mode: str | None = None) -> Self:
        """`div`, in place."""
    def divide(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        """`input / other`, also for integers. `rounding_mode` "trunc" rounds towards zero, as C does, "floor" down, as .."""
    def divide_(self, other: Operand, *, rounding_mode: str | None = None) -> Self:
        """`div`, in place."""
    def dot(self, tensor: Operand) -> Tensor:
        """The sum of the products of two vectors."""
    def double(self, memory_format: object = None) -> Tensor:
        """The tensor as float64."""
    def dsplit(self, indices_or_sections: Extents) -> tuple[Tensor, ...]:
        """Views along axis 2 of at least three: a number of equal ones, or cut before indices."""
    def eig(self, *args: object, **kwargs: object) -> None:
        """Raises RuntimeError, as PyTorch's: it was removed for linalg.eig."""
    def element_size(self) -> Int:
        """Bytes in one element."""
    def eq(self, other: Operand) -> Tensor:
        """As `numpy.equal`."""
    def eq_(self, other: Operand) -> Self:
        """`eq`, in place."""
    def equal(self, other: Tensor) -> Bool:
        """Whether the tensors have the same shape and equal elements."""
    def erf(self) -> Tensor:
        """2/sqrt(pi) times the integral of exp(-t^2) from 0 to x."""
    def erf_(self) -> Self:
        """`erf`, in place."""
    def erfc(self) -> Tensor:
        """1 - erf(x), without cancellation."""
    def erfc_(self) -> Self:
        """`erfc`, in place."""
    def erfinv(self) -> Tensor:
        """The inverse of `erf`."""
    def erfinv_(self) -> Self:
        """`erfinv`, in place."""
    def exp(self) -> Tensor:
        """As `numpy.exp`."""
    def exp2(self) -> Tensor:
        """As `numpy.exp2`."""
    def exp2_(self) -> Self:
        """`exp2`, in place."""
    def exp_(self) -> Self:
        """`exp`, in place."""
    def expand(self, *shape: Extents) -> Tensor:
        """Axes of extent 1 (and new leading ones) repeated with stride 0; -1 keeps an extent."""
    def expand_as(self, other: Tensor) -> Tensor:
        """The tensor expanded to the shape of `other`."""
    def expm1(self) -> Tensor:
        """As `numpy.expm1`."""
    def expm1_(self) -> Self:
        """`expm1`, in place."""
    def exponential_(self, lambd: Float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with random numbers of the density lambd * exp(-lambd * x)."""
    def fill_(self, value: Operand) -> Tensor:
        """Write `value` everywhere."""
    def fill_diagonal_(self, fill_value: Float, wrap: Bool = False) -> Tensor:
        """Write `fill_value` on the diagonal: of a matrix, or of a tensor of more axes with equal extents."""
    def fix(self) -> Tensor:
        """As `numpy.trunc`."""
    def fix_(self) -> Self:
        """`trunc`, in place."""
    def flatten(self, start_dim: Int = 0, end_dim: Int = -1) -> Tensor:
        """The axes from `start_dim` to `end_dim` merged into one."""
    def flip(self, *dims: Extents) -> Tensor:
        """The axes `dims` walked backwards."""
    def fliplr(self) -> Tensor:
        """Axis 1 walked backwards."""
    def flipud(self) -> Tensor:
        """Axis 0 walked backwards."""
    def float(self, memory_format: object = None) -> Tensor:
        """The tensor as float32."""
    def float_power(self, exponent: Operand) -> Tensor:
        """`input ** exponent` in float64, of complex numbers in complex128."""
    def float_power_(self, exponent: Tensor | Float) -> Tensor:
        """`float_power`, in place, of a float64 tensor. Raises RuntimeError for another dtype."""
    def floor(self) -> Tensor:
        """As `numpy.floor`."""
    def floor_(self) -> Self:
        """`floor`, in place."""
    def floor_divide(self, other: Operand) -> Tensor:
        """As `numpy.floor_divide`."""
    def floor_divide_(self, other: Operand) -> Self:
        """`floor_divide`, in place."""
    def fmax(self, other: Operand) -> Tensor:
        """As `numpy.fmax`."""
    def fmin(self, other: Operand) -> Tensor:
        """As `numpy.fmin`."""
    def fmod(self, other: Operand) -> Tensor:
        """As `numpy.fmod`."""
    def fmod_(self, other: Operand) -> Self:
        """`fmod`, in place."""
    def frac(self) -> Tensor:
        """The part behind the point, `x - trunc(x)`."""
    def frac_(self) -> Self:
        """`frac`, in place."""
    def frexp(self) -> Parts:
        """(mantissa, exponent), int32, with input = mantissa * 2^exponent; |mantissa| is in [0.5, 1) or 0."""
    def gather(self, dim: Int, index: Operand, *, sparse_grad: Bool = False) -> Tensor:
        """`out[i][j][k] = input[index[i][j][k]][j][k]` for dim 0, and so on for others."""
    def gcd(self, other: Operand) -> Tensor:
        """The greatest number that divides both; 0 of 0 and 0."""
    def gcd_(self, other: Operand) -> Self:
        """`gcd`, in place."""
    def ge(self, other: Operand) -> Tensor:
        """As `numpy.greater_equal`."""
    def ge_(self, other: Operand) -> Self:
        """`ge`, in place."""
    def gelu(self, approximate: str = 'none') -> Tensor:
        """x * Phi(x) (Hendrycks and Gimpel, 2016); `approximate="tanh"` takes their tanh formula."""
    def geometric_(self, p: Float, *, generator: Generator | None = None) -> Tensor:
        """Fill with the number of trials up to the first success of probability `p`: 1, 2, .."""
    def geqrf(self) -> Reflected:
        """(a, tau) of matrices (.., m, n): R of the QR decomposition is on and above the diagonal of `a`, the .."""
    def ger(self, vec2: Operand) -> Tensor:
        """All products of the elements of two vectors, (m,) and (n,) -> (m, n)."""
    def get_device(self) -> Int:
        """The tensor's GPU number; -1 for other devices."""
    @property
    def grad_dtype(self) -> DType:
        """The dtype of its gradient, always its own."""
    @property
    def grad_fn(self) -> GradientNode | None:
        """The node of backward that made this tensor; None for a leaf."""
    def greater(self, other: Operand) -> Tensor:
        """As `numpy.greater`."""
    def greater_(self, other: Operand) -> Self:
        """`gt`, in place."""
    def greater_equal(self, other: Operand) -> Tensor:
        """As `numpy.greater_equal`."""
    def greater_equal_(self, other: Operand) -> Self:
        """`ge`, in place."""
    def gt(self, other: Operand) -> Tensor:
        """As `numpy.greater`."""
    def gt_(self, other: Operand) -> Self:
        """`gt`, in place."""
    def half(self, memory_format: object = None) -> Tensor:
        """The tensor as float16."""
    def hardshrink(self, lambd: Float = 0.5) -> Tensor:
        """x, but 0 within [-lambd, lambd]."""
    def hash_tensor(self, dim: Extents = (), *, keepdim: Bool = False, mode: Int = 0) -> Tensor:
        """The exclusive or of all elements' bits, over the axes `dim` (all, if there are none): floats as float64, .."""
    def heaviside(self, values: Operand) -> Tensor:
        """1 where `input` is positive, `values` where it is 0, else 0."""
    def heaviside_(self, values: Operand) -> Self:
        """`heaviside`, in place."""
    def histc(self, bins: Int = 100, min: Float = 0, max: Float = 0) -> Tensor:
        """The counts of elements in `bins` bins of equal width between `min` and `max` (the data's, if equal)."""
    def histogram(
        self, bins: Int | Tensor, *, range: tuple[Float, Float] | None = None, weight: Tensor | None = None,
        density: Bool = False,
    ) -> Histogram:
        """(hist, bin_edges): the counts, or weights, of elements in `bins` bins, or between the edges in a tensor."""
    def hsplit(self, indices_or_sections: Extents) -> tuple[Tensor, ...]:
        """Views along axis 1 (0 for a vector): a number of equal ones, or cut before indices."""
    def hypot(self, other: Operand) -> Tensor:
        """As `numpy.hypot`."""
    def hypot_(self, other: Operand) -> Self:
        """`hypot`, in place."""
    def i0(self) -> Tensor:
        """The modified Bessel function I0."""
    def i0_(self) -> Self:
        """`i0`, in place."""
    def igamma(self, other: Operand) -> Tensor:
        """The regularized lower incomplete gamma function."""
    def igamma_(self, other: Operand) -> Self:
        """`igamma`, in place."""
    def igammac(self, other: Operand) -> Tensor:
        """The regularized upper incomplete gamma function."""
    def igammac_(self, other: Operand) -> Self:
        """`igammac`, in place."""
    @property
    def imag(self) -> Tensor:
        """The imaginary parts. Raises TypeError for a real tensor."""
    @imag.setter
    def imag(self, value: Tensor) -> None: ...
    def index_add(self, dim: Int, index: Tensor, source: Tensor, *, alpha: Float = 1) -> Tensor:
        """`input` with `alpha * source` added at the positions `index` along `dim`."""
    def index_add_(self, dim: Int, index: Tensor, source: Tensor, *, alpha: Float = 1) -> Self:
        """`index_add`, in place."""
    def index_copy(self, dim: Int, index: Tensor, source: Tensor) -> Tensor:
        """`input` with `source` written at the positions `index` along `dim`. Raises as `index_add` does."""
    def index_copy_(self, dim: Int, index: Tensor, source: Tensor) -> Self:
        """`index_copy`, in place."""
    def index_fill(self, dim: Int, index: Tensor, value: Float) -> Tensor:
        """`input` with `value` at the positions `index` along `dim`."""
    def index_fill_(self, dim: Int, index: Tensor, value: Float) -> Self:
        """`index_fill`, in place."""
    def index_put(self, indices: Sequence[Tensor], values: Operand, accumulate: Bool = False) -> Tensor:
        """`input` with `values` written (added, with `accumulate`) at `input[indices]`."""
    def index_put_(self, indices: Sequence[Tensor], values: Operand, accumulate: Bool = False) -> Self:
        """`index_put`, in place."""
    def index_reduce(self, dim: Int, index: Operand, source: Operand, reduce: str, *, include_self: Bool = True) -> Tensor:
        """`input` with the slices of `source` folded into those at the positions `index` (1-d) along `dim`."""
    def index_reduce_(self, dim: Int, index: Operand, source: Operand, reduce: str, *, include_self: Bool = True) -> Self:
        """`index_reduce`, in place."""
    def index_select(self, dim: Int, index: Operand) -> Tensor:
        """The slices of `input` at the positions `index` (1-d) along `dim`."""
    def indices(self) -> Any:
        """The positions, in order, (sparse_dim, n). Raises ValueError for other tensors."""
    def inner(self, other: Operand) -> Tensor:
        """The sums of products along the last axes of both: (.., k) and (.., k) -> (.., ..)."""
    def int(self, memory_format: object = None) -> Tensor:
        """The tensor as int32."""
    def inv(self) -> Tensor:
        """The inverses of matrices (.., n, n). Raises LinAlgError, when evaluated, for a singular one."""
    def inverse(self) -> Tensor:
        """The inverses of matrices (.., n, n). Raises LinAlgError, when evaluated, for a singular one."""
    def is_coalesced(self) -> Any:
        """Whether positions are known to be in order and different. Raises ValueError for other tensors."""
    def is_complex(self) -> Bool:
        """Whether the dtype is a complex one."""
    def is_conj(self) -> Bool:
        """Whether the tensor is lazily conjugated: `conj()` shares storage and conjugates on reading."""
    def is_contiguous(self, memory_format: object = None) -> Bool:
        """Whether the elements are contiguous in row-major order, or in channels-last order if `memory_format` is that."""
    @property
    def is_cpu(self) -> Bool:
        """Whether the tensor is on the CPU."""
    @property
    def is_cuda(self) -> Bool:
        """Whether the tensor is on a CUDA device."""
    def is_floating_point(self) -> Bool:
        """Whether the dtype is floating."""
    def is_inference(self) -> Bool:
        """Whether it was made in inference mode, which alone may write to it, or views what was."""
    @property
    def is_ipu(self) -> Bool:
        """Always False: genesis has no devices of type 'ipu'."""
    @property
    def is_leaf(self) -> Bool:
        """True unless an operation that carries gradients made it."""
    @property
    def is_maia(self) -> Bool:
        """Always False: genesis has no devices of type 'maia'."""
    @property
    def is_meta(self) -> Bool:
        """Whether the tensor is on the device "meta", and so without values."""
    @property
    def is_mkldnn(self) -> Bool:
        """Always False: genesis has no layouts of oneDNN."""
    @property
    def is_mps(self) -> Bool:
        """Always False: genesis has no devices of type 'mps'."""
    @property
    def is_mtia(self) -> Bool:
        """Always False: genesis has no devices of type 'mtia'."""
    def is_neg(self) -> Bool:
        """Whether the tensor is lazily negated, such as the imaginary part of a lazy conjugate."""
    @property
    def is_nested(self) -> Bool:
        """False: this one is dense."""
    def is_nonzero(self) -> Bool:
        """Whether the only element is nonzero. Raises ValueError for another number of elements."""
    def is_pinned(self, device: object = None) -> Bool:
        """Whether its memory is pinned: never."""
    @property
    def is_quantized(self) -> Bool:
        """False: there are no quantized tensors here."""
    def is_same_size(self, other: Tensor) -> Bool:
        """Whether `other` has the same shape."""
    def is_set_to(self, tensor: Tensor) -> Bool:
        """Whether `tensor` is the same view of the same storage."""
    def is_shared(self) -> Bool:
        """Whether other processes may share its memory: after `share_memory_`, and on GPUs."""
    def is_signed(self) -> Bool:
        """Whether the dtype has negative numbers."""
    @property
    def is_sparse(self) -> Bool:
        """False: this one is dense."""
    @property
    def is_sparse_csr(self) -> Bool:
        """Whether the tensor is sparse, and compressed by rows."""
    @property
    def is_vulkan(self) -> Bool:
        """Always False: genesis has no devices of type 'vulkan'."""
    @property
    def is_xla(self) -> Bool:
        """Whether it is on a TPU: no."""
    @property
    def is_xpu(self) -> Bool:
        """Always False: genesis has no devices of type 'xpu'."""
    def isclose(self, other: Operand, rtol: Float = 1e-05, atol: Float = 1e-08, equal_nan: Bool = False) -> Tensor:
        """Whether |input - other| <= atol + rtol * |other|; infinities are close to themselves, NaN only with `equal_nan`."""
    def isfinite(self) -> Tensor:
        """As `numpy.isfinite`."""
    def isinf(self) -> Tensor:
        """As `numpy.isinf`."""
    def isnan(self) -> Tensor:
        """As `numpy.isnan`."""
    def isneginf(self) -> Tensor:
        """Whether x is -inf."""
    def isposinf(self) -> Tensor:
        """Whether x is inf."""
    def isreal(self) -> Tensor:
        """Whether the imaginary part is 0, as that of real numbers is."""
    def istft(
        self, n_fft: Int, hop_length: Int | None = None, win_length: Int | None = None, window: Tensor | None = None,
        center: Bool = True, normalized: Bool = False, onesided: Bool | None = None, length: Int | None = None,
        return_complex: Bool = False,
    ) -> Tensor:
        """The signal whose `stft`, with the same settings, is closest to `input`: summed windows over summed squared .."""
    def item(self) -> Bool | Int | Float:
        """The one element, as a Python number. Raises ValueError unless there is exactly one."""
    @property
    def itemsize(self) -> Int:
        """Bytes in one element."""
    def kron(self, other: Operand) -> Tensor:
        """The Kronecker product: each element of `input` is replaced by its product with all of `other`."""
    def kthvalue(self, k: Int, dim: Int = -1, keepdim: Bool = False) -> Sorted:
        """(value, index) of the `k`-th least element along `dim`, counted from 1."""
    def lcm(self, other: Operand) -> Tensor:
        """The least number, not negative, that both divide."""
    def lcm_(self, other: Operand) -> Self:
        """`lcm`, in place."""
    def ldexp(self, other: Operand) -> Tensor:
        """`input * 2 ** other`; of integers `other`, where `2 ** other` is no number of the dtype too."""
    def ldexp_(self, other: Operand) -> Self:
        """`ldexp`, in place."""
    def le(self, other: Operand) -> Tensor:
        """As `numpy.less_equal`."""
    def le_(self, other: Operand) -> Self:
        """`le`, in place."""
    def lerp(self, end: Operand, weight: Operand) -> Tensor:
        """`input + weight * (end - input)`, computed from the nearer end: at weight 1 it is exactly `end`."""
    def lerp_(self, end: Operand, weight: Operand) -> Self:
        """`lerp`, in place."""
    def less(self, other: Operand) -> Tensor:
        """As `numpy.less`."""
    def less_(self, other: Operand) -> Self:
        """`lt`, in place."""
    def less_equal(self, other: Operand) -> Tensor:
        """As `numpy.less_equal`."""
    def less_equal_(self, other: Operand) -> Self:
        """`le`, in place."""
    def lgamma(self) -> Tensor:
        """The logarithm of |gamma(x)|."""
    def lgamma_(self) -> Self:
        """`lgamma`, in place."""
    def log(self) -> Tensor:
        """As `numpy.log`."""
    def log10(self) -> Tensor:
        """As `numpy.log10`."""
    def log10_(self) -> Self:
        """`log10`, in place."""
    def log1p(self) -> Tensor:
        """As `numpy.log1p`."""
    def log1p_(self) -> Self:
        """`log1p`, in place."""
    def log2(self) -> Tensor:
        """As `numpy.log2`."""
    def log2_(self) -> Self:
        """`log2`, in place."""
    def log_(self) -> Self:
        """`log`, in place."""
    def log_normal_(self, mean: Float = 1.0, std: Float = 2.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with exp(z), z normal with this mean and standard deviation."""
    def log_softmax(self, dim: Int | None = None, dtype: DType | None = None) -> Tensor:
        """log(softmax(x)) along `dim`, without overflow."""
    def logaddexp(self, other: Operand) -> Tensor:
        """log(exp(x) + exp(y)), which overflows nowhere; complex numbers too."""
    def logaddexp2(self, other: Operand) -> Tensor:
        """As `numpy.logaddexp2`."""
    def logcumsumexp(self, dim: Int) -> Tensor:
        """The logarithms of the sums of exp(x) up to each index of `dim`, without overflow."""
    def logdet(self) -> Tensor:
        """The logarithms of the determinants of matrices (.., n, n): NaN where negative, unless they are complex."""
    def logical_and(self, other: Operand) -> Tensor:
        """As `numpy.logical_and`."""
    def logical_and_(self, other: Operand) -> Self:
        """`logical_and`, in place."""
    def logical_not(self) -> Tensor:
        """As `numpy.logical_not`."""
    def logical_not_(self) -> Self:
        """`logical_not`, in place."""
    def logical_or(self, other: Operand) -> Tensor:
        """As `numpy.logical_or`."""
    def logical_or_(self, other: Operand) -> Self:
        """`logical_or`, in place."""
    def logical_xor(self, other: Operand) -> Tensor:
        """As `numpy.logical_xor`."""
    def logical_xor_(self, other: Operand) -> Self:
        """`logical_xor`, in place."""
    def logit(self, eps: Float | None = None) -> Tensor:
        """log(x / (1 - x)), the inverse of `sigmoid`; with `eps`, x is clamped to [eps, 1 - eps]."""
    def logit_(self, eps: Float | None = None) -> Self:
        """`logit`, in place."""
    def logsumexp(self, dim: Int | tuple[Int, ...], keepdim: Bool = False) -> Tensor:
        """log(sum(exp(x))) over `dim`, without overflow; -inf for no elements."""
    def long(self, memory_format: object = None) -> Tensor:
        """The tensor as int64."""
    def lstsq(self, *args: object, **kwargs: object) -> None:
        """Raises RuntimeError, as PyTorch's: it was removed for linalg.lstsq."""
    def lt(self, other: Operand) -> Tensor:
        """As `numpy.less`."""
    def lt_(self, other: Operand) -> Self:
        """`lt`, in place."""
    @overload
    def lu(self, pivot: Bool = True, get_infos: Literal[False] = False) -> Factored: ...
    @overload
    def lu(self, pivot: Bool = True, *, get_infos: Literal[True]) -> FactoredInfo:
        """As `lu_factor`, or as `lu_factor_ex` with `get_infos`."""
    def lu_solve(self, LU_data: Operand, LU_pivots: Tensor) -> Tensor:
        """The X with A @ X = `b` (.., n, k), for the A that `lu_factor` factored into `LU_data` and `LU_pivots`."""
    @property
    def mH(self) -> Tensor:
        """The conjugate transpose of the last two axes."""
    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged; a 0-d tensor is its own."""
    def map2_(
        self, x: Tensor, y: Tensor,
        callable: Callable[[Bool | Int | Float, Bool | Int | Float, Bool | Int | Float], Bool | Int | Float],
    ) -> Tensor:
        """Replace each element by `callable` of it and those of `x` and `y`, which broadcast. As slow as `apply_`."""
    def map_(
        self, tensor: Tensor, callable: Callable[[Bool | Int | Float, Bool | Int | Float], Bool | Int | Float],
    ) -> Tensor:
        """Replace each element by `callable` of it and the element of `tensor`, which broadcasts. As slow as `apply_`."""
    def masked_fill(self, mask: Tensor, value: Operand) -> Tensor:
        """The tensor with `value` where `mask` (broadcast) holds."""
    def masked_fill_(self, mask: Tensor, value: Operand) -> Tensor:
        """Write `value` where `mask` (broadcast) holds."""
    def masked_scatter(self, mask: Operand, source: Operand) -> Tensor:
        """`input` with the elements of `source`, in order, where `mask` holds."""
    def masked_scatter_(self, mask: Operand, source: Operand) -> Self:
        """`masked_scatter`, in place."""
    def masked_select(self, mask: Tensor) -> Tensor:
        """The elements where `mask` holds, as a vector; both broadcast."""
    def matmul(self, other: Operand) -> Tensor:
        """The matrix product: vectors and matrices as NumPy's `@`, leading axes broadcast."""
    def matrix_exp(self) -> Tensor:
        """The exponentials of matrices (.., n, n): the sum of A^k / k!."""
    def matrix_power(self, n: Int) -> Tensor:
        """The product of `n` times the matrices `A` (.., m, m), by squaring; of their inverses, for a negative `n`."""
    @overload
    def max(self, dim: None = None, keepdim: Bool = False) -> Tensor: ...
    @overload
    def max(self, dim: Int | Tensor, keepdim: Bool = False) -> Extremum:
        """The greatest element; with `dim`, (values, indices) along it; with a tensor, elementwise."""
    def maximum(self, other: Operand) -> Tensor:
        """As `numpy.maximum`."""
    def mean(self, dim: Int | Sequence[Int] | None = None, keepdim: Bool = False, *, dtype: DType | None = None) -> Tensor:
        """The mean over `dim` (all axes, if None) of a floating tensor."""
    @overload
    def median(self, dim: None = None, keepdim: Bool = False) -> Tensor: ...
    @overload
    def median(self, dim: Int, keepdim: Bool = False) -> Sorted:
        """The lower of the middle elements; with `dim`, (values, indices) along it. NaN where there is one."""
    @overload
    def min(self, dim: None = None, keepdim: Bool = False) -> Tensor: ...
    @overload
    def min(self, dim: Int | Tensor, keepdim: Bool = False) -> Extremum:
        """The least element; with `dim`, (values, indices) along it; with a tensor, elementwise."""
    def minimum(self, other: Operand) -> Tensor:
        """As `numpy.minimum`."""
    def mm(self, mat2: Operand) -> Tensor:
        """The product of two matrices, (m, k) and (k, n)."""
    def mode(self, dim: Int = -1, keepdim: Bool = False) -> Mode:
        """(values, indices) of the most frequent element along `dim`: the least of equally frequent ones, and its last .."""
    def module_load(self, other: Tensor, assign: Bool = False) -> Tensor:
        """The tensor that `load_state_dict` stores: this one with the values of `other`, or `other` itself with `assign`."""
    def moveaxis(self, source: Extents, destination: Extents) -> Tensor:
        """The axes `source` moved to the positions `destination`, the others in their order."""
    def movedim(self, source: Extents, destination: Extents) -> Tensor:
        """The axes `source` moved to the positions `destination`, the others in their order."""
    def msort(self) -> Tensor:
        """The elements in order along axis 0."""
    def mul(self, other: Operand) -> Tensor:
        """As `numpy.multiply`."""
    def mul_(self, other: Operand) -> Self:
        """`mul`, in place."""
    def multinomial(self, num_samples: Int, replacement: Bool = False, *, generator: Generator | None = None) -> Tensor:
        """Indices drawn with the (unnormalized) probabilities in the rows of `input`, (n,) or (rows, n)."""
    def multiply(self, other: Operand) -> Tensor:
        """As `numpy.multiply`."""
    def multiply_(self, other: Operand) -> Self:
        """`mul`, in place."""
    def mv(self, vec: Operand) -> Tensor:
        """The product of a matrix (m, k) and a vector (k,)."""
    def mvlgamma(self, p: Int) -> Tensor:
        """The logarithm of the multivariate gamma function in `p` dimensions."""
    def mvlgamma_(self, p: Int) -> Self:
        """`mvlgamma`, in place."""
    @property
    def name(self) -> None:
        """None: tensors have no names."""
    def nan_to_num(self, nan: Float | None = None, posinf: Float | None = None, neginf: Float | None = None) -> Tensor:
        """`input` with `nan` (0 if None) for NaN, and `posinf` and `neginf` (the dtype's limits if None) for the .."""
    def nan_to_num_(self, nan: Float | None = None, posinf: Float | None = None, neginf: Float | None = None) -> Self:
        """`nan_to_num`, in place."""
    def nanmean(
        self, dim: Int | Sequence[Int] | None = None, keepdim: Bool = False, *, dtype: DType | None = None,
    ) -> Tensor:
        """The mean over `dim` of what is not NaN."""
    @overload
    def nanmedian(self, dim: None = None, keepdim: Bool = False) -> Tensor: ...
    @overload
    def nanmedian(self, dim: Int, keepdim: Bool = False) -> Sorted:
        """`median` of the elements that are not NaN; NaN if all are."""
    def nanquantile(
        self, q: Operand, dim: Int | None = None, keepdim: Bool = False, *, interpolation: str = 'linear',
    ) -> Tensor:
        """As `quantile`, ignoring NaN."""
    def nansum(
        self, dim: Int | Sequence[Int] | None = None, keepdim: Bool = False, *, dtype: DType | None = None,
    ) -> Tensor:
        """The sum over `dim` where NaN counts as 0."""
    def narrow(self, dim: Int, start: Int, length: Int) -> Tensor:
        """`length` elements from `start` along `dim`."""
    def narrow_copy(self, dim: Int, start: Int, length: Int) -> Tensor:
        """`length` elements from `start` along `dim`."""
    @property
    def nbytes(self) -> Int:
        """Bytes in all elements."""
    def ndimension(self) -> Int:
        """The number of axes."""
    def ne(self, other: Operand) -> Tensor:
        """As `numpy.not_equal`."""
    def ne_(self, other: Operand) -> Self:
        """`ne`, in place."""
    def neg(self) -> Tensor:
        """As `numpy.negative`."""
    def neg_(self) -> Self:
        """`neg`, in place."""
    def negative(self) -> Tensor:
        """As `numpy.negative`."""
    def negative_(self) -> Self:
        """`neg`, in place."""
    def nelement(self) -> Int:
        """The number of elements."""
    def new(self, *content: Any, device: DeviceLike = None) -> Tensor:
        """A tensor of this one's dtype and device: from sizes, nested lists, or as a view of a tensor or storage."""
    def new_empty(
        self, *extents: Extents, size: Int | Sequence[Int] | None = None, dtype: DType | None = None,
        device: DeviceLike = None, requires_grad: Bool = False, layout: object = None, pin_memory: Bool = False,
    ) -> Tensor:
        """A tensor in this one's dtype and on its device, to be written."""
    def new_empty_strided(
        self, size: Sequence[Int], stride: Sequence[Int], dtype: DType | None = None, device: DeviceLike = None,
        requires_grad: Bool = False,
    ) -> Tensor:
        """`empty_strided` with the tensor's dtype, on its device."""
    def new_full(
        self, size: Extents, fill_value: Operand, *, dtype: DType | None = None, device: DeviceLike = None,
        requires_grad: Bool = False,
    ) -> Tensor:
        """`fill_value` everywhere, in this tensor's dtype and on its device."""
    def new_ones(
        self, *extents: Extents, size: Int | Sequence[Int] | None = None, dtype: DType | None = None,
        device: DeviceLike = None, requires_grad: Bool = False, layout: object = None, pin_memory: Bool = False,
    ) -> Tensor:
        """Ones in this tensor's dtype and on its device."""
    def new_tensor(
        self, data: ArrayLike, *, dtype: DType | None = None, device: DeviceLike = None, requires_grad: Bool = False,
    ) -> Tensor:
        """A tensor with a copy of `data`, in this tensor's dtype and on its device."""
    def new_zeros(
        self, *extents: Extents, size: Int | Sequence[Int] | None = None, dtype: DType | None = None,
        device: DeviceLike = None, requires_grad: Bool = False, layout: object = None, pin_memory: Bool = False,
    ) -> Tensor:
        """Zeros in this tensor's dtype and on its device."""
    def nextafter(self, other: Operand) -> Tensor:
        """The next number of the dtype after `input` in the direction of `other`."""
    def nextafter_(self, other: Operand) -> Self:
        """`nextafter`, in place."""
    @overload
    def nonzero(self, *, as_tuple: Literal[False] = False) -> Tensor: ...
    @overload
    def nonzero(self, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]:
        """The indices of the nonzero elements, one row each; with `as_tuple`, a tensor per axis."""
    def nonzero_static(self, *, size: Int, fill_value: Int = -1) -> Tensor:
        """The first `size` indices of `nonzero`, padded with rows of `fill_value`."""
    def norm(
        self, p: Float | str | None = 'fro', dim: Int | Sequence[Int] | None = None, keepdim: Bool = False,
        dtype: DType | None = None,
    ) -> Tensor:
        """sum(|x|^p)^(1/p) over `dim` (all axes, if None); "fro" and None are 2."""
    def normal_(self, mean: Float = 0.0, std: Float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with normal random numbers. Raises ValueError for a negative `std`."""
    def not_equal(self, other: Operand) -> Tensor:
        """As `numpy.not_equal`."""
    def not_equal_(self, other: Operand) -> Self:
        """`ne`, in place."""
    def numel(self) -> Int:
        """The number of elements."""
    def numpy(self, *, force: Bool = False) -> np.ndarray[Any, Any]:
        """The values as an ndarray that shares the tensor's memory: writes to one are seen in the other."""
    def orgqr(self, tau: Operand) -> Tensor:
        """The first n columns of H1 @ H2 @ .. @ Hk, (.., m, n), for `input` (.., m, n), m >= n, and `tau` (.., k) of .."""
    def ormqr(self, tau: Operand, other: Operand, left: Bool = True, transpose: Bool = False) -> Tensor:
        """Q @ `other`, for the whole Q (.., m, m) of `geqrf`'s results; without `left`, `other` @ Q; with `transpose`, .."""
    def outer(self, vec2: Operand) -> Tensor:
        """All products of the elements of two vectors, (m,) and (n,) -> (m, n)."""
    @property
    def output_nr(self) -> Int:
        """0: a node of the graph of gradients has one result."""
    def permute(self, *dims: Extents) -> Tensor:
        """Axes in the order `dims`."""
    def pin_memory(self, device: DeviceLike = None) -> Tensor:
        """The tensor itself: transfers to a GPU use pinned memory anyway."""
    def pinv(self, *, atol: Operand | None = None, rtol: Operand | None = None, hermitian: Bool = False) -> Tensor:
        """The pseudo-inverses of matrices (.., m, n) (Moore, 1920; Penrose, 1955)."""
    def pinverse(self, *, atol: Operand | None = None, rtol: Operand | None = None, hermitian: Bool = False) -> Tensor:
        """The pseudo-inverses of matrices (.., m, n) (Moore, 1920; Penrose, 1955)."""
    def polygamma(self, n: Int) -> Tensor:
        """The derivative of order `n` of the digamma function."""
    def polygamma_(self, n: Int) -> Tensor:
        """`polygamma`, in place."""
    def positive(self) -> Tensor:
        """`input` as it is."""
    def pow(self, exponent: Operand) -> Tensor:
        """`input ** exponent`; a literal exponent of 2, 3, 0.5 or -1 becomes a product, a root or a quotient."""
    def pow_(self, exponent: Operand) -> Self:
        """`pow`, in place."""
    def prelu(self, weight: Operand) -> Tensor:
        """x where positive, weight * x elsewhere; one weight, or one for each channel (axis 1). Raises ValueError .."""
    def prod(self, dim: Int | Sequence[Int] | None = None, keepdim: Bool = False, *, dtype: DType | None = None) -> Tensor:
        """The product over `dim` (all axes, if None). Integers and bools multiply to int64."""
    def put(self, index: Tensor, source: Tensor, accumulate: Bool = False) -> Tensor:
        """`input` with `source` written (added, with `accumulate`) at the flat indices `index`."""
    def put_(self, index: Tensor, source: Tensor, accumulate: Bool = False) -> Self:
        """`put`, in place."""
    def qr(self, some: Bool = True) -> QR:
        """(Q, R) as `linalg.qr`: with `some` in mode "reduced", else "complete"."""
    def quantile(
        self, q: Operand, dim: Int | None = None, keepdim: Bool = False, *, interpolation: str = 'linear',
    ) -> Tensor:
        """The `q`-th quantiles, a number in [0, 1] or a vector, over `dim` (all elements, if None); NaN propagates."""
    def rad2deg(self) -> Tensor:
        """As `numpy.rad2deg`."""
    def rad2deg_(self) -> Self:
        """`rad2deg`, in place."""
    def random_(self, *bounds: Any, generator: Generator | None = None, **named: Any) -> Tensor:
        """Fill with random integers: of [0, to) by `random_(to)`, of [from, to) by `random_(from, to)`."""
    def ravel(self) -> Tensor:
        """All axes merged into one, whose elements follow each other in memory."""
    @property
    def real(self) -> Tensor:
        """The real parts; a real tensor itself."""
    @real.setter
    def real(self, value: Tensor) -> None: ...
    def reciprocal(self) -> Tensor:
        """1 / x."""
    def reciprocal_(self) -> Self:
        """`reciprocal`, in place."""
    def record_stream(self, stream: object) -> None:
        """Does nothing: a GPU has one stream."""
    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Call `hook` with the gradient of this tensor whenever backward computes it; its result, unless None, replaces .."""
    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call `hook` with this tensor, a leaf, whenever backward has added to its `.grad`."""
    def reinforce(self, *args: object, **kwargs: object) -> None:
        """Raises RuntimeError, as PyTorch's: it was removed for distributions."""
    def relu(self) -> Tensor:
        """x where positive, else 0; NaN of NaN."""
    def relu_(self) -> Self:
        """`relu`, in place."""
    def remainder(self, other: Operand) -> Tensor:
        """As `numpy.remainder`."""
    def remainder_(self, other: Operand) -> Self:
        """`remainder`, in place."""
    def renorm(self, p: Float, dim: Int, maxnorm: Float) -> Tensor:
        """`input` with its slices along `dim` scaled down to the p-norm `maxnorm` if theirs is greater."""
    def renorm_(self, p: Float, dim: Int, maxnorm: Float) -> Self:
        """`renorm`, in place."""
    def repeat(self, *repeats: Extents) -> Tensor:
        """Copies of the tensor end to end, `repeats` along each axis."""
    def repeat_interleave(
        self, repeats: Int | Tensor | None = None, dim: Int | None = None, *, output_size: Int | None = None,
    ) -> Tensor:
        """Each element (slice along `dim`) repeated; with `repeats` alone, each index repeated by its count."""
    def requires_grad_(self, requires_grad: Bool = True) -> Tensor:
        """Set `requires_grad`, and return the tensor."""
    def reshape(self, *shape: Extents) -> Tensor:
        """The same elements in another shape, in row-major order; one extent may be -1 and follows from the others."""
    def reshape_as(self, other: Tensor) -> Tensor:
        """The tensor in the shape of `other`."""
    def resize(self, *sizes: Extents) -> Tensor:
        """`reshape`. Raises RuntimeError for another number of elements."""
    def resize_(self, *sizes: Extents, memory_format: object = None) -> Tensor:
        """Changes the tensor's shape in place: it is the elements of its storage from its first one on, in row-major .."""
    def resize_as(self, tensor: Tensor) -> Tensor:
        """`resize`, to the shape of `tensor`."""
    def resize_as_(self, template: Tensor, memory_format: object = None) -> Tensor:
        """`resize_` to the shape of `template`."""
    def resize_as_sparse_(self, the_template: Tensor) -> Tensor:
        """`sparse_resize_` to the shape of another sparse tensor."""
    def resolve_conj(self) -> Tensor:
        """The tensor itself, or the computed copy of a lazily conjugated one."""
    def resolve_neg(self) -> Tensor:
        """The tensor itself, or the computed copy of a lazily negated one."""
    def retain_grad(self) -> None:
        """Make `backward` store this result's gradient in `.grad`, as for leaves."""
    @property
    def retains_grad(self) -> Bool:
        """Whether `retain_grad` was called on this result."""
    def roll(self, shifts: Extents, dims: Int | Sequence[Int] | None = None) -> Tensor:
        """The elements shifted by `shifts` along `dims`; those that leave at one end enter at the other."""
    def rot90(self, k: Int = 1, dims: Sequence[Int] = (0, 1)) -> Tensor:
        """`input` rotated by `k` quarter turns, from the first of two axes towards the second."""
    def round(self, *, decimals: Int = 0) -> Tensor:
        """`input` rounded to `decimals` digits, ties to even; negative ones round to tens, hundreds, and so on."""
    def round_(self, *, decimals: Int = 0) -> Self:
        """`round`, in place."""
    def row_indices(self) -> Any:
        """The row of each element, or block, (n,). Raises ValueError for other tensors."""
    def rsqrt(self) -> Tensor:
        """1 / sqrt(x)."""
    def rsqrt_(self) -> Self:
        """`rsqrt`, in place."""
    def scatter(self, dim: Int, index: Operand, src: Operand, *, reduce: str | None = None) -> Tensor:
        """`input` with `src[i]` written at `index[i]` along `dim`; of several writes to one element the last wins."""
    def scatter_(self, dim: Int, index: Operand, src: Operand, *, reduce: str | None = None) -> Self:
        """`scatter`, in place."""
    def scatter_add(self, dim: Int, index: Operand, src: Operand) -> Tensor:
        """`input` with `src[i]` added at `index[i]` along `dim`."""
    def scatter_add_(self, dim: Int, index: Operand, src: Operand) -> Self:
        """`scatter_add`, in place."""
    def scatter_reduce(self, dim: Int, index: Operand, src: Operand, reduce: str, *, include_self: Bool = True) -> Tensor:
        """`input` with `src[i]` folded into it at `index[i]` along `dim`, by "sum", "prod", "mean", "amax" or "amin"."""
    def scatter_reduce_(self, dim: Int, index: Operand, src: Operand, reduce: str, *, include_self: Bool = True) -> Self:
        """`scatter_reduce`, in place."""
    def select(self, dim: Int, index: Int) -> Tensor:
        """Position `index` along `dim`, which is removed."""
    def select_scatter(self, src: Operand, dim: Int, index: Int) -> Tensor:
        """`input` with `src` at position `index` along `dim`."""
    def selu(self) -> Tensor:
        """1.0507 * elu(x, 1.6733) (Klambauer et al., 2017)."""
    def selu_(self) -> Self:
        """`selu`, in place."""
    def set_(
        self, source: Tensor | TypedStorage | None = None, storage_offset: Int = 0, size: Sequence[Int] | None = None,
        stride: Sequence[Int] | None = None,
    ) -> Tensor:
        """Rebind the tensor to `source`, a tensor or storage of its dtype, and share its memory; returns the tensor."""
    def set_creator(self, ctx: Any, backward: Callable[..., Any]) -> Tensor:
        """Make `backward(ctx, *grad_outputs)` the gradient rule of this tensor; returns the tensor."""
    def sgn(self) -> Tensor:
        """`sign`, also for complex numbers: modulus 1 and the same angle, and 0 for 0."""
    def sgn_(self) -> Self:
        """`sgn`, in place."""
    def share_memory_(self) -> Tensor:
        """Move the storage to shared memory: processes to which `multiprocessing` sends the tensor see it. Returns the .."""
    def short(self, memory_format: object = None) -> Tensor:
        """The tensor as int16."""
    def sigmoid(self) -> Tensor:
        """1 / (1 + exp(-x))."""
    def sigmoid_(self) -> Self:
        """`sigmoid`, in place."""
    def sign(self) -> Tensor:
        """-1, 0 or 1; 0 of NaN."""
    def sign_(self) -> Self:
        """`sign`, in place."""
    def signbit(self) -> Tensor:
        """Whether the sign is minus: true of -0.0 as well."""
    def silu(self) -> Tensor:
        """x * sigmoid(x) (Hendrycks and Gimpel, 2016)."""
    def silu_(self) -> Self:
        """`silu`, in place."""
    def sin(self) -> Tensor:
        """As `numpy.sin`."""
    def sin_(self) -> Self:
        """`sin`, in place."""
    def sinc(self) -> Tensor:
        """sin(pi x) / (pi x), and 1 at 0."""
    def sinc_(self) -> Self:
        """`sinc`, in place."""
    def sinh(self) -> Tensor:
        """As `numpy.sinh`."""
    def sinh_(self) -> Self:
        """`sinh`, in place."""
    @property
    def size(self) -> ElementCount:
        """The number of elements; `size()` is the shape and `size(dim)` an extent."""
    def slice_inverse(
        self, src: Tensor, dim: Int = 0, start: Int | None = None, end: Int | None = None, step: Int = 1,
    ) -> Tensor:
        """A view of this tensor's storage with the layout of `src`, a slice of the storage."""
    def slice_scatter(
        self, src: Operand, dim: Int = 0, start: Int | None = None, end: Int | None = None, step: Int = 1,
    ) -> Tensor:
        """`input` with `src` at `start:end:step` along `dim`."""
    def slogdet(self) -> SignAndLog:
        """(sign, logabsdet) of the determinants of matrices (.., n, n), which themselves may overflow."""
    def smm(self, mat: Tensor) -> SparseTensor:
        """The product of a sparse and a dense matrix, as a sparse one with all of a row in which `input` has elements."""
    def softmax(self, dim: Int | None = None, dtype: DType | None = None) -> Tensor:
        """exp(x) / sum(exp(x)) along `dim`."""
    def solve(self, *args: object, **kwargs: object) -> None:
        """Raises RuntimeError, as PyTorch's: it was removed for linalg.solve."""
    def sort(self, dim: Int = -1, descending: Bool = False, stable: Bool = False) -> Sorted:
        """(values, indices) sorted along `dim`. Equal elements keep their order; NaN is the greatest."""
    def sparse_dim(self) -> Int:
        """The number of axes that are sparse."""
    def sparse_mask(self, mask: Tensor) -> SparseTensor:
        """The elements at the positions of the sparse tensor `mask`. Raises ValueError for another shape of it."""
    def sparse_resize_(self, size: Sequence[Int], sparse_dim: Int, dense_dim: Int) -> Tensor:
        """Give a sparse tensor the shape `size`, whose axes hold all of its elements. Raises ValueError for others."""
    def sparse_resize_and_clear_(self, size: Sequence[Int], sparse_dim: Int, dense_dim: Int) -> Tensor:
        """Give a sparse tensor the shape `size` and no elements."""
    def split(self, split_size: Extents, dim: Int = 0) -> tuple[Tensor, ...]:
        """Views of `split_size` along `dim` (the last may be smaller), or of the sizes in a list."""
    def split_with_sizes(self, split_sizes: Sequence[Int], dim: Int = 0) -> tuple[Tensor, ...]:
        """Views of the given sizes along `dim`."""
    def sqrt(self) -> Tensor:
        """As `numpy.sqrt`."""
    def sqrt_(self) -> Self:
        """`sqrt`, in place."""
    def square(self) -> Tensor:
        """x * x."""
    def square_(self) -> Self:
        """`square`, in place."""
    def squeeze(self, dim: Int | Sequence[Int] | None = None, *others: Int) -> Tensor:
        """Without the axes of extent 1 (those in `dim`, if given)."""
    def squeeze_(self, dim: Int | Sequence[Int] | None = None, *others: Int) -> Self:
        """`squeeze`, in place."""
    def sspaddmm(self, mat1: Tensor, mat2: Tensor, *, beta: Float = 1, alpha: Float = 1) -> SparseTensor:
        """`beta` * input + `alpha` * mat1 @ mat2, of a sparse `input` and a sparse `mat1`: all elements of both."""
    def std(
        self, dim: Int | Sequence[Int] | None = None, unbiased: Bool | None = None, keepdim: Bool = False, *,
        correction: Float | None = None,
    ) -> Tensor:
        """The standard deviation over `dim`, as in `var`. Where all elements are equal its gradient is 0."""
    def std_mean(
        self, dim: Int | Sequence[Int] | None = None, unbiased: Bool | None = None, keepdim: Bool = False, *,
        correction: Float | None = None,
    ) -> tuple[Tensor, Tensor]:
        """(standard deviation, mean), as `std` and `mean`."""
    def stft(
        self, n_fft: Int, hop_length: Int | None = None, win_length: Int | None = None, window: Tensor | None = None,
        center: Bool = True, pad_mode: str = 'reflect', normalized: Bool = False, onesided: Bool | None = None,
        return_complex: Bool | None = None, align_to_window: Bool | None = None,
    ) -> Tensor:
        """The Fourier transforms of windows of `n_fft` samples along a signal: (.., frequencies, windows)."""
    def storage(self) -> TypedStorage:
        """The elements that this tensor and its views share."""
    def storage_offset(self) -> Int:
        """The offset of the first element in the storage, in elements."""
    def storage_type(self) -> Type:
        """PyTorch's class of its storage, such as `FloatStorage`."""
    @overload
    def stride(self, dim: None = None) -> tuple[Int, ...]: ...
    @overload
    def stride(self, dim: Int) -> Int:
        """The steps, in elements, between neighbours along each axis (or along `dim`)."""
    def sub(self, other: Operand, *, alpha: Operand = 1) -> Tensor:
        """`input - alpha * other`."""
    def sub_(self, other: Operand, *, alpha: Operand = 1) -> Self:
        """`sub`, in place."""
    def subtract(self, other: Operand, *, alpha: Operand = 1) -> Tensor:
        """`input - alpha * other`."""
    def subtract_(self, other: Operand, *, alpha: Operand = 1) -> Self:
        """`sub`, in place."""
    def sum(self, dim: Int | Sequence[Int] | None = None, keepdim: Bool = False, *, dtype: DType | None = None) -> Tensor:
        """The sum over `dim` (all axes, if None). Integers and bools sum to int64."""
    def sum_to_size(self, *size: Extents) -> Tensor:
        """`input` summed to `size`, a shape that broadcasts to its own. Raises ValueError for a shape that does not."""
    def svd(self, some: Bool = True, compute_uv: Bool = True) -> Transposed:
        """(U, S, V) of matrices (.., m, n): `input` is U @ diag(S) @ V.mH, S descending; with `some`, min(m, n) vectors."""
    def swapaxes(self, *dims: Extents, dim0: Int | None = None, dim1: Int | None = None) -> Tensor:
        """Two axes exchanged; a tuple longer than two permutes; none reverses the last two."""
    def swapaxes_(self, *dims: Extents, dim0: Int | None = None, dim1: Int | None = None) -> Self:
        """`swapaxes`, in place."""
    def swapdims(self, *dims: Extents, dim0: Int | None = None, dim1: Int | None = None) -> Tensor:
        """Two axes exchanged; a tuple longer than two permutes; none reverses the last two."""
    def swapdims_(self, *dims: Extents, dim0: Int | None = None, dim1: Int | None = None) -> Self:
        """`swapdims`, in place."""
    def symeig(self, *args: object, **kwargs: object) -> None:
        """Raises RuntimeError, as PyTorch's: it was removed for linalg.eigh."""
    def t(self) -> Tensor:
        """The transpose of a matrix; a vector is its own."""
    def t_(self) -> Tensor:
        """`t`, in place."""
    def take(self, index: Tensor) -> Tensor:
        """The elements at flat indices."""
    def take_along_dim(self, indices: Operand, dim: Int | None = None) -> Tensor:
        """The elements at `indices` along `dim`; the two broadcast along other axes. Without `dim`, `input` is flattened."""
    def tan(self) -> Tensor:
        """As `numpy.tan`."""
    def tan_(self) -> Self:
        """`tan`, in place."""
    def tanh(self) -> Tensor:
        """As `numpy.tanh`."""
    def tanh_(self) -> Self:
        """`tanh`, in place."""
    def tensor_split(self, indices_or_sections: Int | Sequence[Int] | Tensor, dim: Int = 0) -> tuple[Tensor, ...]:
        """Views along `dim`: a number of nearly equal ones, or cut before the indices in a list."""
    def tile(self, *dims: Int) -> Tensor:
        """Copies of `input` end to end, `dims` along each axis; fewer `dims` apply to the last axes."""
    def to(
        self, *targets: DType | str | Device | None | Tensor, dtype: DType | None = None, device: DeviceLike = None,
        copy: Bool = False, non_blocking: Bool = False, memory_format: object = None,
    ) -> Tensor:
        """The tensor in another dtype or on another device, or like another tensor; itself if nothing changes."""
    def to_dense(self, dtype: DType | None = None, *, masked_grad: Bool | None = None) -> Tensor:
        """The tensor with all its elements; a dense one itself."""
    def to_device(self, device: DeviceLike, *, stream: object = None) -> Tensor:
        """The tensor on `device`; itself if it is there already."""
    def to_padded_tensor(self, padding: Float, output_size: Sequence[Int] | None = None) -> Tensor:
        """A nested tensor as a dense one, see `genesis.nested`; its class has a method of its own. Raises ValueError .."""
    def to_sparse(
        self, sparse_dim: Int | None = None, *, layout: Any = None, blocksize: Sequence[Int] | None = None,
        dense_dim: Int | None = None,
    ) -> Any:
        """The elements that are not zero; of the axes, the first `sparse_dim` (all, if None) are sparse."""
    def to_sparse_bsc(self, blocksize: Sequence[Int] | None = None, dense_dim: Int | None = None) -> SparseTensor:
        """As a sparse matrix of blocks (height, width), compressed by columns of these."""
    def to_sparse_bsr(self, blocksize: Sequence[Int] | None = None, dense_dim: Int | None = None) -> SparseTensor:
        """As a sparse matrix of blocks (height, width), compressed by rows of these."""
    def to_sparse_coo(self) -> SparseTensor:
        """As a sparse tensor with coordinates."""
    def to_sparse_csc(self, dense_dim: Int | None = None) -> SparseTensor:
        """As a sparse matrix compressed by columns."""
    def to_sparse_csr(self, dense_dim: Int | None = None) -> SparseTensor:
        """As a sparse matrix compressed by rows."""
    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers (one number, if 0-d)."""
    def topk(self, k: Int, dim: Int = -1, largest: Bool = True, sorted: Bool = True) -> Sorted:
        """(values, indices) of the `k` greatest (least, without `largest`) elements along `dim`, in order."""
    def trace(self) -> Tensor:
        """The sum of a matrix's diagonal."""
    def transpose(self, *dims: Extents, dim0: Int | None = None, dim1: Int | None = None) -> Tensor:
        """Two axes exchanged; a tuple longer than two permutes; none reverses the last two."""
    def transpose_(self, *dims: Extents, dim0: Int | None = None, dim1: Int | None = None) -> Self:
        """`transpose`, in place."""
    def triangular_solve(
        self, A: Operand, upper: Bool = True, transpose: Bool = False, unitriangular: Bool = False,
    ) -> Triangular:
        """(X, A) with `A` @ X = `b`, of a triangle of `A` as in `solve_triangular`; with `transpose`, A.T @ X = b."""
    def tril(self, diagonal: Int = 0) -> Tensor:
        """The lower triangle of the last two axes, zeros above."""
    def tril_(self, diagonal: Int = 0) -> Self:
        """`tril`, in place."""
    def triu(self, diagonal: Int = 0) -> Tensor:
        """The upper triangle of the last two axes, zeros below."""
    def triu_(self, diagonal: Int = 0) -> Self:
        """`triu`, in place."""
    def true_divide(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        """`input / other`, also for integers. `rounding_mode` "trunc" rounds towards zero, as C does, "floor" down, as .."""
    def true_divide_(self, other: Operand, *, rounding_mode: str | None = None) -> Self:
        """`div`, in place."""
    def trunc(self) -> Tensor:
        """As `numpy.trunc`."""
    def trunc_(self) -> Self:
        """`trunc`, in place."""
    @overload
    def type(self, dtype: None = None) -> str: ...
    @overload
    def type(self, dtype: DType | str) -> Tensor:
        """The tensor as `dtype`, a dtype or a name such as "genesis.LongTensor"; without one, its own such name."""
    def type_as(self, other: Tensor) -> Tensor:
        """The tensor in `other`'s dtype and on its device."""
    def unbind(self, dim: Int = 0) -> tuple[Tensor, ...]:
        """The slices along `dim`, as views."""
    def unflatten(self, dim: Int, sizes: Sequence[Int]) -> Tensor:
        """Axis `dim` split into `sizes`."""
    def unfold(self, dimension: Int, size: Int, step: Int) -> Tensor:
        """All windows of `size` elements along `dimension`, `step` apart; each is a row along a new last axis."""
    def uniform_(self, low: Float = 0.0, high: Float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with random numbers of [low, high). Raises ValueError unless low <= high."""
    def unique(
        self, sorted: Bool = True, return_inverse: Bool = False, return_counts: Bool = False, dim: Int | None = None,
    ) -> Any:
        """The distinct elements (slices along `dim`), sorted; on request the inverse indices and the counts."""
    def unique_consecutive(self, return_inverse: Bool = False, return_counts: Bool = False, dim: Int | None = None) -> Any:
        """The elements (slices along `dim`) without consecutive duplicates; on request, the inverse indices and the .."""
    def unsafe_chunk(self, chunks: Int, dim: Int = 0) -> tuple[Tensor, ...]:
        """At most `chunks` views of equal extent along `dim` (the last may be smaller)."""
    def unsafe_split(self, split_size: Extents, dim: Int = 0) -> tuple[Tensor, ...]:
        """Views of `split_size` along `dim` (the last may be smaller), or of the sizes in a list."""
    def unsafe_split_with_sizes(self, split_sizes: Sequence[Int], dim: Int = 0) -> tuple[Tensor, ...]:
        """Views of the given sizes along `dim`."""
    def unsqueeze(self, dim: Int) -> Tensor:
        """With a new axis of extent 1 at `dim`."""
    def unsqueeze_(self, dim: Int) -> Self:
        """`unsqueeze`, in place."""
    def untyped_storage(self) -> UntypedStorage:
        """The bytes that this tensor and its views share."""
    def values(self) -> Any:
        """The elements, (n, ..). Raises ValueError for other tensors."""
    def var(
        self, dim: Int | Sequence[Int] | None = None, unbiased: Bool | None = None, keepdim: Bool = False, *,
        correction: Float | None = None,
    ) -> Tensor:
        """The variance over `dim`: squares over n - `correction` (two passes: mean, then squares)."""
    def var_mean(
        self, dim: Int | Sequence[Int] | None = None, unbiased: Bool | None = None, keepdim: Bool = False, *,
        correction: Float | None = None,
    ) -> tuple[Tensor, Tensor]:
        """(variance, mean), as `var` and `mean`."""
    def vdot(self, other: Operand) -> Tensor:
        """As `dot`, with the conjugate of `input`."""
    def view(self, *shape: Extents) -> Tensor:
        """The same elements in another shape, in row-major order; one extent may be -1 and follows from the others."""
    def view_as(self, other: Tensor) -> Tensor:
        """A view with the shape of `other`."""
    @property
    def volatile(self) -> Bool:
        """Whether it is a Variable of PyTorch 0.3 without gradients: no."""
    def vsplit(self, indices_or_sections: Extents) -> tuple[Tensor, ...]:
        """Views along axis 0 of at least two: a number of equal ones, or cut before indices."""
    def where(self, condition: Tensor, other: Operand) -> Tensor:
        """The tensor where `condition` holds and `other` elsewhere."""
    def xlogy(self, other: Operand) -> Tensor:
        """x * log(y), and 0 where x is 0."""
    def xlogy_(self, other: Operand) -> Self:
        """`xlogy`, in place."""
    def zero_(self) -> Tensor:
        """Write zeros everywhere."""
    def zero_grad(self, set_to_none: Bool = True) -> None:
        """Drop the accumulated gradient: `.grad` becomes None, or zeros without gradient."""
