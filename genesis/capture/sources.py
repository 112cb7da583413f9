"""Where a replay finds the tensors of a recorded call, and the inputs of its programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from genesis.capture.records import Given, Refusal, Source
from genesis.tensor.handle import Tensor
from genesis.tracing.trace import Array, Trace

if TYPE_CHECKING:
    from genesis.capture.recorder import Recorder

__all__ = ["given_of", "source_of"]


def source_of(recorder: Recorder, tensor: Tensor) -> Source | None:
    """Where a replay finds a tensor that was there before the call."""
    state = recorder.states.get(tensor)
    if state is None or state.source is not None:
        return None if state is None else state.source
    owner = recorder.gradients.get(tensor)
    if owner is not None and (source := source_of(recorder, owner)) is not None:
        recorder.states[owner].reads_gradient = True
        state.label, state.source = f"the gradient of {recorder.states[owner].label}", ("gradient", source)
    else:
        for view, held in recorder.states.items():
            if held.base is tensor and view is not tensor and held.source is not None:
                state.label, state.source = f"the storage of {held.label}", ("base", held.source)
                break
    return state.source


def given_of(recorder: Recorder, trace: Trace, position: int, array: Array) -> Given:
    """Where a replay finds an input."""
    if id(array) in recorder.outputs:
        return Given(("output", *recorder.outputs[id(array)]))
    if id(array) in recorder.constants:
        return Given(("constant", array))
    tensor, held = recorder.inputs.get((trace, position), (None, array))
    if id(held) in recorder.outputs:
        return Given(("output", *recorder.outputs[id(held)]))
    memory = held.memory
    assert memory is not None
    copied = array.memory is not memory
    state = None if tensor is None else recorder.states.get(tensor)
    if tensor is not None and state is not None and state.array is held:
        source = source_of(recorder, tensor)
        if source is not None:
            return Given(source, None, copied)
    for other, like in recorder.states.items():  # another handle on it
        if like.array is held and (source := source_of(recorder, other)) is not None:
            return Given(source, None, copied)
    root = tensor if tensor is None or tensor._base is None else tensor._base
    state = None if root is None else recorder.states.get(root)
    if root is not None and state is not None and (whole := state.array.memory) is not None:
        source = source_of(recorder, root)
        if source is not None and whole.buffer is memory.buffer:
            at = memory.layout._replace(offset=memory.layout.offset - whole.layout.offset)
            return Given(source, at, copied)
    line = trace.line_of(position + 1)
    reason = f"a tensor of shape {array.node.shape} is read that no argument, name or attribute leads to"
    recorder.refusals.append(Refusal(reason, line))
    return Given(("constant", array))
