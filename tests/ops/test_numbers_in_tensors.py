"""A tensor of one element where an operation takes a number is read, or refused: never taken for something else."""

import numpy as np
import pytest

import genesis
from genesis.ops.layout import LAYOUT_RULES
from genesis.ops.registry import OPERATIONS
from genesis.ops.signatures import numbers_of, signature_of
from tests.ops.checks import convert
from tests.ops.samples import INTERNAL, samples_of

MAKE = genesis.from_numpy


def in_tensors(argument):
    """The argument with each of its numbers in a tensor."""
    if isinstance(argument, list | tuple):
        return type(argument)(in_tensors(item) for item in argument)
    dtypes = {int: genesis.int64, float: genesis.float64}
    return genesis.tensor(argument, dtype=dtypes[type(argument)]) if type(argument) in dtypes else argument


def function_named(name):
    if name in LAYOUT_RULES:
        return getattr(genesis.Tensor, name)
    return getattr(genesis, name, None) or getattr(genesis.nn.functional, name, None)


def leaves(result):
    return [leaf for item in result for leaf in leaves(item)] if isinstance(result, list | tuple) else [result]


NAMES = [name for name, row in sorted(OPERATIONS.items()) if (name in LAYOUT_RULES or numbers_of(row)) and name not in INTERNAL]


@pytest.mark.usefixtures("by_references")
@pytest.mark.parametrize("name", [name for name in NAMES if function_named(name)])
def test_a_number_may_be_a_tensor(name):
    function, row = function_named(name), OPERATIONS[name]
    names = list(signature_of(row).parameters)
    for sample in samples_of(name, genesis.float32)[:4]:
        def is_number(place, argument):
            if any(isinstance(item, np.ndarray) for item in (argument if isinstance(argument, list) else [argument])):
                return False
            return (place in numbers_of(row) or name in LAYOUT_RULES) and place != "input"

        given = [(names[min(i, len(names) - 1)], a) for i, a in enumerate(sample.arguments)]
        plain = [convert(a, MAKE) for _, a in given], {k: convert(a, MAKE) for k, a in sample.keywords.items()}
        tensors = [in_tensors(a) if is_number(k, a) else convert(a, MAKE) for k, a in given], {
            k: in_tensors(a) if is_number(k, a) else convert(a, MAKE) for k, a in sample.keywords.items()}
        if name.startswith(("rand", "dropout", "bernoulli")):
            continue
        expected = leaves(function(*plain[0], **plain[1]))
        try:
            found = leaves(function(*tensors[0], **tensors[1]))
        except (TypeError, ValueError):
            continue
        for a, b in zip(found, expected, strict=True):
            if isinstance(b, genesis.Tensor):
                np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
            else:
                assert a == b
    assert (genesis.ones(3) * 2).tolist() == [2, 2, 2]


def test_a_tensor_of_several_elements_is_refused():
    x = genesis.ones(3, 4)
    with pytest.raises(TypeError, match=r"narrow: .* takes a number, got a tensor of shape \(2,\)"):
        x.narrow(0, genesis.tensor([0, 1]), 1)
    with pytest.raises(TypeError, match=r"vector_norm: ord takes a number, got a tensor of shape \(2,\)"):
        genesis.linalg.vector_norm(x, genesis.tensor([1.0, 2.0]))
