"""The product of a sparse matrix in CSR form with a dense one: a primitive whose kernel goes row by row."""

from __future__ import annotations

import numpy as np

from genesis.ir.graph import Node, Value
from genesis.ops.elementwise import zeros_like
from genesis.ops.indexing import check_index, gather_value, scatter_value
from genesis.ops.reduction import sum
from genesis.ops.registry import composite, expand, primitive
from genesis.ops.views import reshape_value


def _reference(
    node: Node, pointers: np.ndarray, rows: np.ndarray, columns: np.ndarray, values: np.ndarray, dense: np.ndarray
) -> np.ndarray:
    from scipy.sparse import csr_matrix

    def product(pointers: np.ndarray, columns: np.ndarray, values: np.ndarray, dense: np.ndarray) -> np.ndarray:
        return csr_matrix((values, columns, pointers), (len(pointers) - 1, len(dense))) @ dense  # type: ignore[no-any-return]

    if dense.ndim == 2:
        return product(pointers, columns, values, dense)
    return np.stack([product(*parts) for parts in zip(pointers, columns, values, dense, strict=True)])  # under vmap


def _grad(
    g: Value, y: Value, pointers: Value, rows: Value, columns: Value, values: Value, dense: Value
) -> tuple[Value | None, ...]:
    """By the dense factor: the transpose's product with `g`. By the values: rows of `g` dot rows of the dense factor."""
    shape = (columns.shape[0], dense.shape[1])
    rows = check_index("matmul", rows, y.shape[0], wrap=False)  # the product itself uses only the pointers
    taken = gather_value(g, _spread(rows, shape[1]), 0)
    to_values = sum(taken * gather_value(dense, _spread(columns, shape[1]), 0), 1)
    to_dense = scatter_value(zeros_like(dense), _spread(columns, shape[1]), taken * _spread(values, shape[1]), 0, "add")
    return None, None, None, to_values, to_dense


def _spread(x: Value, width: int) -> Value:
    return expand(reshape_value(x, (*x.shape, 1)), (*x.shape, width))


primitive("csr_matmul", "host", grad=_grad, reference=_reference)


@composite("csr_matmul", (), method=False, public=False)
def csr_matmul(pointers: Value, rows: Value, columns: Value, values: Value, dense: Value) -> Value:
    """The CSR matrix (`values`, `rows` and `columns` (n,); row i starts at `pointers[i]`) times `dense`."""
    extent = pointers.shape[0] - 1
    columns = check_index("matmul", columns, dense.shape[0], wrap=False)
    return values.graph.add("csr_matmul", (pointers, rows, columns, values, dense), (extent, dense.shape[1]), dense.dtype)
