"""What `dir` of a public module shows, and where the fields of a row put it."""

import importlib
import inspect
import pickle
from types import FunctionType

import pytest

import genesis
from genesis.ops.registry import OPERATIONS

MODULES = [
    "amp", "autograd", "autograd.functional", "backends", "cuda", "debug", "fft", "func", "function", "linalg", "masked", "nn",
    "nn.functional", "nn.init", "nn.parallel", "nn.utils", "optim", "optim.lr_scheduler", "pytree", "random", "serialization",
    "signal", "signal.windows", "special", "tune", "utils", "utils.checkpoint", "utils.data",
]
ROWS = list(OPERATIONS.values())


@pytest.mark.parametrize("name", MODULES)
def test_dir_shows_the_public_names_and_nothing_else(name):
    module = importlib.import_module(f"genesis.{name}")
    shown = {name for name in dir(module) if not name.startswith("__")}
    assert shown == set(module.__all__) and not [name for name in shown if name.startswith("_")]
    assert all(hasattr(module, name) for name in shown)


def test_rows_are_shown_in_their_namespaces():
    for row in ROWS:
        for module in (importlib.import_module(f"genesis.{namespace}") for namespace in row.namespaces):
            assert callable(getattr(module, row.name)) and row.name in module.__all__, (row.name, module)


@pytest.mark.parametrize("row", [row for row in ROWS if row.aliases], ids=lambda row: row.name)
def test_a_row_is_found_by_its_aliases(row):
    for alias in row.aliases:
        home, _, name = alias.rpartition(".")
        module = importlib.import_module(f"genesis.{home}") if home else genesis
        assert inspect.unwrap(getattr(module, name)) is inspect.unwrap(row.define)
        assert home or not row.method or hasattr(genesis.Tensor, name)


def test_a_row_that_is_not_public_is_no_function():
    for row in ROWS:
        function = None if row.public else getattr(genesis, row.name, None)
        assert not callable(function) or inspect.unwrap(function) is not inspect.unwrap(row.define), row.name


def test_methods_are_pickled_by_the_places_where_they_stand():
    methods = [getattr(genesis.Tensor, name) for name in dir(genesis.Tensor)]
    removed = {"eig", "lstsq", "reinforce", "solve", "symeig"}  # which raise an error that says what to call instead
    functions = [method for method in methods if isinstance(method, FunctionType) and method.__name__ not in removed]
    assert len(functions) > 500
    for function in functions:
        assert pickle.loads(pickle.dumps(function)) is function
    assert genesis.Tensor.numel.__qualname__ == "Tensor.numel" and genesis.Tensor.__iadd__.__name__ == "__iadd__"
    assert pickle.loads(pickle.dumps(genesis.Tensor.exp)) is genesis.exp and genesis.exp.__module__ == "genesis"
    assert pickle.loads(pickle.dumps(genesis.dropout)) is genesis.dropout


@pytest.mark.parametrize("name", ["is_complex", "is_floating_point", "is_signed", "is_conj", "is_neg", "is_inference", "numel",
                                  "clone", "conj", "real", "t", "ravel", "adjoint", "resolve_neg"])
def test_functions_of_one_tensor_take_it_by_name(name):
    x = genesis.ones(2, 3)
    assert str(getattr(genesis, name)(input=x)) == str(getattr(genesis, name)(x))


def test_functions_take_their_first_arguments_by_name():
    x = genesis.ones(2, 3)
    assert genesis.movedim(input=x, source=0, destination=1).shape == (3, 2)
    assert genesis.broadcast_to(input=x[0], size=(4, 3)).shape == (4, 3)
    assert genesis.masked_fill(input=x, mask=x > 0, value=2.0).sum().item() == 12
    assert genesis.is_same_size(input=x, other=x)
    assert genesis.promote_types(type1=genesis.int8, type2=genesis.int16) is genesis.int16
