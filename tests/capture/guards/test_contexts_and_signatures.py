"""Context variables, signatures, dicts with methods of their own, names of classes: what they say is guarded."""

import contextvars
import dataclasses
import inspect

import numpy as np
import pytest

import genesis

X = genesis.arange(3).float()
_unset = contextvars.ContextVar("unset")
_by = contextvars.ContextVar("by", default=2.0)


@dataclasses.dataclass
class Settings:
    by: float = 2.0


_settings = contextvars.ContextVar("settings", default=Settings())  # noqa: B039


class ByClass(dict):
    """A dict whose `get` looks the class of a model up."""

    def get(self, model):
        return super().get(str(type(model))) or 1.0


class Model:
    pass


def called(a, b=2.0):
    return a * b


def wrapped(*args):
    return called(*args)


wrapped.__wrapped__ = called
model, by_class = Model(), ByClass()


def balanced(x):
    token = _by.set(_by.get() + 1)
    try:
        return x * _by.get()
    finally:
        _by.reset(token)


def set_class(name):
    Model.__qualname__ = name


WAYS = {
    "a context variable": (lambda x: x * _by.get(), lambda: _by.set(5.0)),
    "one without a value": (lambda x: x * _unset.get(1.0), lambda: _unset.set(5.0)),
    "what is in one": (lambda x: x * _settings.get().by, lambda: setattr(_settings.get(), "by", 5.0)),
    "another object in one": (lambda x: x * _settings.get().by, lambda: _settings.set(Settings(5.0))),
    "one that the call sets and resets": (balanced, lambda: _by.set(5.0)),
    "how many parameters a function has": (lambda x: x * len(inspect.signature(called).parameters),
                                           lambda: setattr(called, "__code__", (lambda a: a).__code__)),
    "a parameter's default": (lambda x: x * inspect.signature(called).parameters["b"].default,
                              lambda: setattr(called, "__defaults__", (5.0,))),
    "what another function wraps": (lambda x: x * len(inspect.signature(wrapped).parameters),
                                    lambda: setattr(wrapped, "__wrapped__", set_class)),
    "a signature of its own": (lambda x: x * len(inspect.signature(called).parameters),
                               lambda: setattr(called, "__signature__", inspect.signature(set_class))),
    "an item by a method of the dict's own": (lambda x: x * by_class.get(model),
                                              lambda: by_class.update({str(Model): 5.0})),
    "that method": (lambda x: x * by_class.get(model), lambda: setattr(ByClass, "get", lambda self, model: 7.0)),
    "the name of a class as text": (lambda x: x * len(str(Model)), lambda: set_class("LongerName")),
    "the name of a class in a text": (lambda x: x * len(f"{Model}"), lambda: set_class("LongerName")),
}


@pytest.fixture(autouse=True)
def _as_it_was():
    code, get, name = called.__code__, ByClass.get, Model.__qualname__
    yield
    called.__code__, called.__defaults__, wrapped.__wrapped__, ByClass.get = code, (2.0,), called, get
    vars(called).pop("__signature__", None)
    by_class.clear()
    set_class(name)
    _settings.get().by = 2.0


@pytest.mark.parametrize("way", WAYS)
def test_a_change_of_what_is_read_is_seen(way):
    function, change = WAYS[way]

    def calls():
        compiled = genesis.compile(function)
        for act in (lambda: None, lambda: None, lambda: None, change, lambda: None, lambda: None):
            act()
            np.testing.assert_array_equal(compiled(X).numpy(), function(X).numpy())
        assert len(compiled.entries) == 2 and not compiled.refusals, compiled.refusals

    contextvars.copy_context().run(calls)


def test_a_call_that_leaves_a_context_variable_set_is_not_replayed():
    def call(x):
        _by.set(_by.get() + 1)
        return x * _by.get()

    def calls():
        compiled = genesis.compile(call)
        assert [compiled(genesis.ones(1)).item() for _ in range(3)] == [3, 4, 5]
        assert "the value of" in str(compiled.refusals[0])

    contextvars.copy_context().run(calls)
