"""Random draws: positions reserved in the generator's stream, and tensors drawn from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.functions.creation import Placing
from genesis.ir.annotations import AnyFunction
from genesis.ir.dtypes import DType, get_default_dtype
from genesis.ir.replayable import replayable_module
from genesis.ir.shapes import numel
from genesis.ir.sparse_layouts import SparseLayout
from genesis.ops.registry import OPERATIONS
from genesis.runtime import rng
from genesis.runtime.devices import CPU, Device, DeviceLike
from genesis.runtime.rng import Generator
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.dispatch import call, call_on
from genesis.tensor.handle import Tensor
from genesis.tracing.recording_hooks import numbers_drawn, refuse


def draws(count: int, generator: Generator | None = None) -> tuple[int, int]:
    """(seed, first place) of `count` fresh numbers, as signed 64-bit integers; of a generator of one's own, if given."""
    if generator is not None:
        refuse("numbers are drawn from a generator of the call's own")
        return _signed(generator.initial_seed()), _signed(generator.reserve(count))
    start = rng.reserve(count)
    return numbers_drawn(start, count) or (_signed(rng.initial_seed()), _signed(start))


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def alike(
    draw: AnyFunction, input: Tensor, placing: Placing, dtype: DType | None, device: DeviceLike, **settings: Any
) -> Tensor:
    """What `draw` gives for the shape, dtype and device of `input`; of a sparse one, other elements in its places."""
    settings |= {"dtype": dtype or input.dtype, "device": device or input.device}
    kind = input.layout
    if isinstance(input, CompositeTensor) and isinstance(kind, SparseLayout) and placing.get("layout") in (None, kind):
        elements = draw(input.derived_part.shape, **settings)
        return input.to(elements.device).with_elements(elements)  # type: ignore[no-any-return]
    return draw(input.shape, **settings, **placing)  # type: ignore[no-any-return]


def drawn(
    kind: str, shape: Sequence[int], dtype: DType | None, *parameters: float, device: Device = CPU,
    generator: Generator | None = None,
) -> Tensor:
    """Fresh numbers of the operation `kind`: uniform, normal or randint."""
    shape = tuple(shape)
    arguments = *draws(numel(shape), generator), shape, dtype or get_default_dtype(), *parameters
    return call_on(device, OPERATIONS[kind], arguments)


def drawn_by_host(name: str, shape: Sequence[int], *parameters: Tensor, generator: Generator | None = None) -> Tensor:
    """Fresh numbers of the row `name` in this shape, to which the parameters are expanded."""
    spread = [p.expand(tuple(shape)) for p in parameters]
    return call(OPERATIONS[name], (*spread, *draws(numel(tuple(shape)), generator)))


replayable_module(__name__)
