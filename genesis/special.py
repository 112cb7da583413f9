"""Special functions under PyTorch's names, mostly equal to SciPy's: the rows whose namespace is "special"."""

from genesis.functions.methods.table import functions_of
from genesis.functions.public_names import rows_shown
from genesis.tensor.handle import Tensor, method
from genesis.tensor.in_place import write

__all__: list[str] = []

__getattr__, __dir__ = rows_shown("special", __all__)
(polygamma,) = functions_of("polygamma")


def _polygamma(self: Tensor, n: int) -> Tensor:
    """The derivative of order `n` of the digamma function."""
    return polygamma(n, self)


method(_polygamma, "polygamma")


def _polygamma_(self: Tensor, n: int) -> Tensor:
    """`polygamma`, in place."""
    return write(self, _polygamma(self, n))


method(_polygamma_, "polygamma_")
