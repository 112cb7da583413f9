"""The names of an exported program's inputs, state and outputs: PyTorch's `ExportGraphSignature`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ExportGraphSignature:
    """Names of a program's inputs and outputs.

    Attributes:
        user_inputs: the tensors of the arguments.
        user_outputs: the values that are returned, as the listing names them.
        parameters: those of the module.
        buffers: those of the module.
        inputs_to_parameters: input of the graph -> parameter.
        inputs_to_buffers: input of the graph -> buffer.
        buffers_to_mutate: value -> the buffer that holds it after a call.
    """

    user_inputs: tuple[str, ...]
    user_outputs: tuple[str, ...]
    parameters: tuple[str, ...]
    buffers: tuple[str, ...]
    inputs_to_parameters: Mapping[str, str]
    inputs_to_buffers: Mapping[str, str]
    buffers_to_mutate: Mapping[str, str]
