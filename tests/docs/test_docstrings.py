"""The examples of operations run: pytest finds those of functions and classes by itself, those of rows it does not."""

import doctest
import inspect

import pytest

import genesis
from genesis import nn
from genesis.functions.methods.table import function_of
from genesis.ops import OPERATIONS
from genesis.ops.examples import _sessions

# The most used rows: each says what it takes, what it raises, and shows an example.
MOST_USED = (
    "matmul", "linear", "softmax", "cross_entropy", "layer_norm", "gather", "scatter_add", "index_select", "cat", "stack",
    "sum", "mean", "var", "amax", "amin", "argmax", "argmin", "where", "clamp", "reshape", "permute", "expand", "slice",
)


# What users call: the other rows are steps of optimizers, parts of operations, and collectives.
PUBLIC = sorted(name for name, row in OPERATIONS.items() if row.public or row.namespaces or row.aliases)


def example_of(name: str) -> doctest.DocTest:
    return doctest.DocTestParser().get_doctest(function_of(OPERATIONS[name]).__doc__ or "", {"genesis": genesis}, name, name, 0)


def test_public_operations_show_an_example():
    assert len(PUBLIC) > 400 and not [name for name in PUBLIC if not example_of(name).examples]
    assert set(_sessions()) <= set(OPERATIONS)
    assert not [name for name in _sessions() if ">>>" in (OPERATIONS[name].define.__doc__ or "")]


def test_examples_of_rows_run():
    said: list[str] = []
    for name in OPERATIONS:
        doctest.DocTestRunner().run(example_of(name), out=said.append)
    assert not said, "".join(said)


@pytest.mark.parametrize("name", MOST_USED)
def test_the_most_used_rows_say_what_they_raise_and_show_an_example(name):
    assert example_of(name).examples
    assert "Raises" in OPERATIONS[name].define.__doc__.split()


def test_layers_show_an_example():
    assert not [name for name, layer in inspect.getmembers(nn, inspect.isclass) if ">>>" not in layer.__doc__]
