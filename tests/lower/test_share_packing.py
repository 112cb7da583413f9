"""A matrix that many products of few rows have in common is packed once, a small graph in and out; values are NumPy's."""

import numpy as np

import genesis
from genesis.lower.share_packing import share_packing
from tests.lower.text import parsed, shown


def steps(count: int, rows: int = 20, columns: int = 32) -> str:
    products = "\n".join(f"%{2 + n} = matmul(%0, %1) : float32[{rows}, {columns}]" for n in range(count))
    results = ", ".join(f"%{2 + n}" for n in range(count))
    return f"%0 = input() : float32[{rows}, 48]\n%1 = input() : float32[48, {columns}]\n{products}\nreturn {results}"


def test_operand_of_many_products_is_packed_once() -> None:
    assert shown(share_packing(parsed(steps(4)), 64)) == """
%0 = input() : float32[20, 48]
%1 = input() : float32[48, 32]
%2 = reshape(%1, shape=(48, 2, 16), strides=(32, 16, 1), offset=0) : float32[48, 2, 16]
%3 = permute(%2, shape=(2, 48, 16), strides=(16, 32, 1), offset=0) : float32[2, 48, 16]
%4 = clone(%3, materialize=True, reader='product') : float32[2, 48, 16]
%5 = permute(%4, shape=(48, 2, 16), strides=(16, 768, 1), offset=0) : float32[48, 2, 16]
%6 = reshape(%5, shape=(48, 32), strides=(32, 1), offset=0) : float32[48, 32]
%7 = matmul(%0, %6) : float32[20, 32]
%8 = matmul(%0, %6) : float32[20, 32]
%9 = matmul(%0, %6) : float32[20, 32]
%10 = matmul(%0, %6) : float32[20, 32]
return %7, %8, %9, %10
""".strip()


def test_few_products_many_rows_and_parts_of_strips_are_left() -> None:
    for text in (steps(3), steps(4, rows=96), steps(4, columns=40)):
        graph = parsed(text)
        assert share_packing(graph, 64) is graph
    graph = parsed(steps(4))
    assert share_packing(graph, 0) is graph


def test_recurrent_products_agree_with_numpy() -> None:
    random = np.random.default_rng(0)
    x, w, v = (random.normal(size=size) for size in ((20, 48), (48, 64), (64, 48)))

    @genesis.compile
    def recurrent(x: genesis.Tensor, w: genesis.Tensor, v: genesis.Tensor) -> genesis.Tensor:
        for _ in range(5):
            x = ((x @ w).tanh() @ v) * 0.1
        return x

    expected = x
    for _ in range(5):
        expected = (np.tanh(expected @ w) @ v) * 0.1
    np.testing.assert_allclose(recurrent(*map(genesis.tensor, (x, w, v))).numpy(), expected, rtol=1e-9)
