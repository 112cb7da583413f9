"""The ways to run a script, and what each shows: values, failures, versions, gradients, and who shares memory with whom."""

from __future__ import annotations

import copy
import importlib
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

import genesis
from genesis.autograd.forward_values import ReleasedError
from genesis.execution import reference_mode
from genesis.execution.eager import _running
from genesis.execution.flush import flush_all
from tests.fuzz.scripts import Script

EXACT = {"float32": 2**24, "float64": 2**53, "float16": 2**11, "bfloat16": 2**8}


class InexactError(BaseException):
    """No script catches it: a number is too large for sums of it to be exact: two right answers may differ."""


def numbers(seed: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Small integers."""
    count = math.prod(shape)
    values = (np.arange(count) * (seed * 2 + 3) + seed) % 7
    return (values - 3 if dtype != "uint8" else values).astype(dtype).reshape(shape)


def first(value: Any) -> Any:
    """The first tensor of what a function returned, or what is no container itself."""
    while isinstance(value, tuple | list | dict) and len(value):
        value = value[0] if not isinstance(value, dict) else next(iter(value.values()))
    return value


class Settings(SimpleNamespace):
    """A user's object."""

    __hash__ = object.__hash__


@dataclass
class Pair:
    """Two tensors as one argument."""

    a: Any
    b: Any


def helper(value: Any, settings: Settings) -> Any:
    """A function that another calls."""
    if value.ndim and settings.flag:
        value[0] = settings.k
    return value


def network(lib: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """A module with a parameter, and a buffer that each call adds to."""

    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            values = lib.tensor(numbers(4, shape, dtype))
            self.weight = lib.nn.Parameter(values, requires_grad=dtype.startswith("float"))
            self.register_buffer("total", lib.zeros((), dtype=values.dtype))
            self.scale = 2

        def forward(self, x: Any) -> Any:
            if self.training:
                self.total += x.detach().sum().to(self.total.dtype)
            return x * self.scale + self.weight

    return Net()


def own_function(lib: Any) -> Callable[[Any], Any]:
    """A function whose gradient is the user's, and not the true one."""

    class Twice(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * x.clamp(-2, 3)

    return Twice.apply


BACKWARD_REFUSED = {genesis.autograd.ChangedError, ReleasedError}


class Failed:
    """An exception; two are alike if their types are. Which of two reasons a backward names first is not compared: one that
    fails midway has released what it derived until then.
    """

    def __init__(self, error: BaseException) -> None:
        self.error = error.with_traceback(None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Failed) and (
            type(self.error) is type(other.error) or {type(self.error), type(other.error)} == BACKWARD_REFUSED)

    def __repr__(self) -> str:
        return f"{type(self.error).__name__}: {self.error}"


class Seen:
    """What a script showed, in order; of torch's tensors what both libraries tell alike."""

    def __init__(self, lib: Any) -> None:
        self.facts: list[tuple[str, Any]] = []
        self.lib = lib

    def see(self, value: Any, name: str = "") -> None:
        if isinstance(value, self.lib.Tensor):
            self._tensor(value, name)
        elif isinstance(value, BaseException):
            self.facts.append((name, Failed(value)))
        elif isinstance(value, tuple | list):
            self.facts.append((name, (type(value).__name__, len(value))))
            for k, item in enumerate(value):
                self.see(item, f"{name}[{k}]")
        elif isinstance(value, dict | Settings):
            items = value if isinstance(value, dict) else vars(value)
            self.facts.append((name, [*items]))
            for key, item in items.items():
                self.see(item, f"{name}.{key}")
        elif not hasattr(value, "step"):
            number = value + 0.0 if isinstance(value, float) else value  # without the sign of zero, as below
            self.facts.append((name, (type(value).__name__, repr(number))))

    def _tensor(self, value: Any, name: str) -> None:
        try:
            array = value.detach().numpy()
            # A `.data` tensor counts writes for itself, and replays do not count for it.
            version = value._version if self.lib is genesis and value._versions is None else None
            about = array.dtype.name, tuple(value.shape), value.requires_grad, value.is_leaf, version
        except Exception as error:  # torch's too, which tells late of a view that it refuses
            self.facts.append((name, Failed(error)))
            return
        # Without the sign of zero: a sum of one element -0.0 begins with 0.0 in NumPy, and with the element in kernels.
        self.facts.append((name, (about, (array + array.dtype.type(0)).tobytes())))
        if value.is_leaf and value.grad is not None:
            self.see(value.grad, f"{name}.grad")

    def settle(self, names: dict[str, Any]) -> None:
        """Look at everything, then write to each tensor in turn: what shares memory changes with it.

        Where nothing requires a gradient, most are written through NumPy, which needs no kernels.
        """
        for name, value in names.items():
            self.see(value, name)
        tensors: dict[str, Any] = {}
        for name, value in names.items():
            self._collect(value, name, tensors)
        outside = not any([tensor.requires_grad for tensor in tensors.values()])
        for k, (name, tensor) in enumerate(tensors.items()):
            try:
                if k % 8 == 1 or not outside:
                    tensor.data.add_(k % 3 + 1)
                else:
                    array = tensor.detach().numpy()
                    array[...] = array + array.dtype.type(k % 100 + 1)
            except Exception as error:
                self.facts.append((f"writing to {name}", Failed(error)))
        for name, tensor in tensors.items():
            self.see(tensor, f"{name} after all were written to")

    def _collect(self, value: Any, name: str, tensors: dict[str, Any]) -> None:
        if isinstance(value, self.lib.Tensor):
            tensors[name] = value
            if value.is_leaf and value.grad is not None:
                tensors[f"{name}.grad"] = value.grad
        elif isinstance(value, tuple | list):
            for k, item in enumerate(value):
                self._collect(item, f"{name}[{k}]", tensors)
        elif isinstance(value, dict | Settings):
            for key, item in (value if isinstance(value, dict) else vars(value)).items():
                self._collect(item, f"{name}.{key}", tensors)


def quantum(values: np.ndarray) -> float:
    """The largest power of two that all these floats are multiples of; at most 1."""
    fractions, exponents = np.frexp(values.astype(np.float64).ravel())
    whole = np.ldexp(fractions, 53).astype(np.int64)
    bits = np.ldexp((whole & -whole).astype(np.float64), exponents - 53)
    return float(np.min(bits, where=whole != 0, initial=1.0))


@contextmanager
def exact_references() -> Iterator[None]:
    """Eager mode, which raises InexactError where a float is no longer sure to be exact."""
    evaluate = reference_mode.evaluate_all

    def checked(nodes: Any, outputs: Any, given: Any, scalars: Any = ()) -> dict[int, np.ndarray]:
        values = evaluate(nodes, outputs, given, scalars)
        for index, value in values.items():
            limit, node = EXACT.get(value.dtype.name, 0), nodes[index]
            if limit and value.size:
                read = [values[i] for i in node.inputs if i in values] if node.op in ("sum", "matmul") else []
                largest = max([float(np.abs(v).sum(dtype=np.float64)) for v in read], default=float(np.abs(value).max()))
                if not largest * 4 <= limit * min(map(quantum, [*read, value])):
                    raise InexactError
        return values

    reference_mode.evaluate_all = checked
    try:
        with genesis.eager():
            yield
    finally:
        reference_mode.evaluate_all = evaluate


def run(
    script: Script, mode: AbstractContextManager[Any], wrap: Callable[..., Any] = lambda f: f, lib: Any = genesis
) -> list[tuple[str, Any]]:
    """What a script shows when it runs in this mode, its function wrapped."""
    seen = Seen(lib)
    scope: dict[str, Any] = {
        "lib": lib, "np": np, "numbers": numbers, "first": first, "Settings": Settings, "Pair": Pair, "Net": network,
        "helper": helper, "twice": own_function(lib),
        "recomputed": importlib.import_module(f"{lib.__name__}.utils.checkpoint").checkpoint, "copy": copy,
        "see": seen.see, "settle": seen.settle, "wrap": wrap, "suppress": suppress, "__name__": "program",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lib.manual_seed(0)
        threads = genesis.get_num_threads()
        try:
            with mode:
                exec(compile(script.source(), "<program>", "exec"), scope)
        finally:
            genesis.set_num_threads(threads)
    return seen.facts


def difference(script: Script, made: list[Any] | None = None) -> str:
    """Where two ways to run a script differ, in words; nothing if all agree. Raises InexactError where none is right.

    `made` gets the compiled functions.
    """
    flush_all()
    want = run(script, exact_references())

    def compiled(function: Callable[..., Any]) -> Any:
        result = genesis.compile(function, dynamic=True if script.is_dynamic else None)
        if made is not None:
            made.append(result)
        return result

    ways = {
        "lazily": lambda: run(script, nullcontext()),
        "compiled": lambda: run(script, nullcontext(), compiled),
    }
    if script.is_closure:  # few differ in this alone
        ways["operation by operation"] = lambda: run(script, _running(False, math.inf))
    for way, outcome in ways.items():
        have = outcome()
        for k, (got, wanted) in enumerate(zip(have, want, strict=False)):
            if got != wanted:
                return f"{way}: fact {k}, {wanted[0] or 'seen'}: {told(got)}, want {told(wanted)}"
        if len(have) != len(want):
            return f"{way}: {len(have)} facts, want {len(want)}"
    return ""


def told(fact: tuple[str, Any]) -> str:
    """A fact, in short."""
    name, what = fact
    if isinstance(what, tuple) and len(what) == 2 and isinstance(what[1], bytes):
        about, data = what
        return f"{name} {about} {np.frombuffer(data, about[0])[:12].tolist()}"
    return f"{name} {what!r}"


def unlike_torch(script: Script, made: list[Any] | None = None) -> str:
    """Where eager mode differs from torch, in words. Nothing if they agree until torch refuses what is allowed here.

    torch refuses writes to what the value is read from, and a backward of what nothing requires a gradient for. It draws
    other random numbers, and has zeros for a gradient where genesis has none: of what was filled.
    """
    import torch  # takes a second, and only this wants it

    script = script.without("after", {k for k, line in enumerate(script.after) if "._version" in line})
    if any([name in script.source() for name in ("lib.rand", ".fill_(", ".zero_(")]):
        return ""
    flush_all()
    have, want = run(script, exact_references()), run(script, nullcontext(), lib=torch)
    for got, wanted in zip(have, want, strict=False):
        if isinstance(wanted[1], Failed) and isinstance(wanted[1].error, RuntimeError):
            return ""
        if _plainly(got) != _plainly(wanted):
            return f"torch: {told(got)}, want {told(wanted)}"
    return "" if len(have) == len(want) else f"torch: {len(have)} facts, want {len(want)}"


def _plainly(fact: tuple[str, Any]) -> tuple[str, Any]:
    """A fact without what libraries tell differently: types of exceptions, and versions."""
    name, what = fact
    if isinstance(what, Failed):
        return name, "failed"
    if isinstance(what, tuple) and len(what) == 2 and isinstance(what[1], bytes):
        return name, (what[0][:4], what[1])
    return name, what
