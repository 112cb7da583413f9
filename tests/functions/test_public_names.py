"""What `dir` of a public module shows, and where the fields of a row put it."""

import importlib
import inspect
import pickle
import typing
from types import FunctionType

import pytest

import genesis
from genesis.ops.registry import OPERATIONS

MODULES = [
    "amp", "autograd", "autograd.functional", "backends", "cuda", "debug", "fft", "func", "function", "linalg", "masked", "nn",
    "nn.functional", "nn.init", "nn.parallel", "nn.utils", "optim", "optim.lr_scheduler", "pytree", "random", "serialization",
    "signal", "signal.windows", "special", "utils", "utils.checkpoint", "utils.data",
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
    assert not [method for method in methods if isinstance(method, FunctionType) and "<" in method.__qualname__]
    for name in ("numel", "add_", "absolute_", "__add__", "__radd__", "__iadd__", "double", "view_as", "new_zeros", "is_signed",
                 "coalesce", "squeeze_", "index_add_", "dim", "detach", "eig", "lstsq", "solve", "symeig", "reinforce"):
        function = getattr(genesis.Tensor, name)
        assert pickle.loads(pickle.dumps(function)) is function and function.__qualname__ == f"Tensor.{name}"
        assert function.__name__ == name
    assert pickle.loads(pickle.dumps(genesis.Tensor.exp)) is genesis.exp and genesis.exp.__module__ == "genesis"
    for function in (genesis.dropout, genesis.real, genesis.imag):
        assert pickle.loads(pickle.dumps(function)) is function


def test_type_hints_of_made_functions_are_known_where_they_stand():
    for function in (genesis.abs, genesis.Tensor.add, genesis.cat, genesis.nn.Dropout.forward, genesis.nn.Linear.__init__):
        assert isinstance(typing.get_type_hints(function), dict)
