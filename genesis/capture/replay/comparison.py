"""`check=True`: a call runs uncompiled, is undone and replayed; the results must agree."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from genesis.capture.record.recorder import Recorder
from genesis.capture.record.traced_call import record
from genesis.capture.replay.entry import Entry
from genesis.ir.annotations import AnyFunction
from genesis.pytree import leaves_of
from genesis.runtime import rng
from genesis.tensor.handle import Tensor

ROUNDING = 1000  # ulps of the largest element by which results may differ


class MismatchError(AssertionError):
    """A replay's results differ from the function's own: found by `check=True`."""


def compared(function: AnyFunction, entry: Entry, found: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`entry.replay(*found)`, compared with what the function does when called; raises MismatchError."""
    wanted, recorder, _ = record(function, args, kwargs, undoable=True)
    then = _values(recorder, wanted)
    recorder.take_back()
    result = entry.replay(*found)
    now = _values(recorder, result)
    recorder.release()
    for name, value in then.items():
        if not _agree(value, now.get(name)):
            raise MismatchError(
                f"compile: with check=True, {name} of {getattr(function, '__name__', 'the function')} is "
                f"{_shown(now.get(name))} replayed; want {_shown(value)}, as uncompiled"
            )
    return result


def _values(recorder: Recorder, result: object) -> dict[str, object]:
    """The values of a call's results, gradients and changed tensors, by name."""
    found: dict[str, object] = {f"result {k}": leaf for k, leaf in enumerate(_leaves(result))}
    for tensor, state in recorder.states.items():
        found[state.label] = tensor
        found[f"the gradient of {state.label}"] = tensor._grad
    found["the position in the random numbers"] = rng.get_state()[1]
    return {name: leaf.numpy(force=True).copy() if isinstance(leaf, Tensor) else _rounded(leaf) for name, leaf in found.items()}


def _rounded(leaf: object) -> object:
    """A number from a tensor, of float32 at least, as an array; other leaves as they are."""
    return np.array(leaf, np.float32) if isinstance(leaf, float) else leaf


def _leaves(result: object) -> Iterator[object]:
    """The leaves of a result, those of dataclasses among them."""
    for leaf in leaves_of(result):
        yield from _leaves(vars(leaf)) if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type) else (leaf,)


def _agree(want: object, got: object) -> bool:
    """Whether two results are the same up to rounding."""
    if not isinstance(want, np.ndarray) or not isinstance(got, np.ndarray) or want.dtype.kind not in "fV":
        return bool(np.array_equal(want, got))  # type: ignore[arg-type]
    a, b = want.astype(np.float64), got.astype(np.float64)
    bound = ROUNDING * max(float(np.finfo(want.dtype).eps) if want.dtype.kind == "f" else 2.0**-7, 0.0)
    scale = np.abs(a[np.isfinite(a)]).max(initial=0.0)
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=bound, atol=bound * scale, equal_nan=True))


def _shown(value: object) -> str:
    return np.array2string(value, threshold=6, edgeitems=2) if isinstance(value, np.ndarray) else repr(value)
