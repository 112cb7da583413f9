"""A new operation costs a row: from it come the function, the method, the gradient, a fused kernel and its tests."""

import numpy as np
import pytest

import genesis
from genesis.functions.methods.table import function_of, install_row
from genesis.ops.registry import OPERATIONS, PRIMITIVES, composite
from genesis.ops.rows import unary
from genesis.tensor.handle import Tensor
from tests.ops.checks import check_gradients, check_reference


@pytest.fixture
def softsign():
    row = unary(
        "soft_sign_of", grad=lambda g, y, x: g * (1 - abs_of(y)) * (1 - abs_of(y)),
        ref=lambda x: x / (1 + np.abs(x)), emit=lambda k, x: k.div(x, k.add(k.abs(x), k.constant(1))),
    )
    install_row(row)
    yield row
    del OPERATIONS["soft_sign_of"], PRIMITIVES["soft_sign_of"], Tensor.soft_sign_of, Tensor.soft_sign_of_
    vars(genesis).pop("soft_sign_of", None)


def abs_of(x):
    return OPERATIONS["abs"](x)


def test_a_row_gives_function_method_gradient_and_conformance(softsign):
    x = genesis.tensor([1.0, -3.0], requires_grad=True)
    assert genesis.soft_sign_of(x).tolist() == x.soft_sign_of().tolist() == [0.5, -0.75]
    x.soft_sign_of().sum().backward()
    assert x.grad.tolist() == [0.25, 0.0625]
    assert repr(x.soft_sign_of().grad_fn) == "<SoftSignOfBackward>"
    check_reference("soft_sign_of")
    check_gradients("soft_sign_of")


def test_a_row_is_fused_with_its_neighbours(softsign):
    x = genesis.tensor(np.linspace(-3, 3, 1000))
    y = (x * 2 + 1).soft_sign_of() - 0.25
    assert len(genesis.debug.program(y).kernels) == 1


def test_a_definition_that_calls_a_function_of_tensors_is_told_of_the_row():
    row = composite("sine_of", method=False)(lambda x: genesis.sin(x))
    try:
        with pytest.raises(TypeError, match=r'sin: takes tensors, got a Value .* the row, genesis.ops.OPERATIONS\["sin"\]'):
            function_of(row)(genesis.ones(3))
    finally:
        del OPERATIONS["sine_of"]
