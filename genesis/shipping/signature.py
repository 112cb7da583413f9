"""What an exported program takes, holds and gives, by name: PyTorch's `ExportGraphSignature`."""

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
        inputs_to_parameters: which parameter an input of the graph is.
        inputs_to_buffers: which buffer an input of the graph is.
        buffers_to_mutate: the values that buffers hold after a call, and the buffers.
    """

    user_inputs: tuple[str, ...]
    user_outputs: tuple[str, ...]
    parameters: tuple[str, ...]
    buffers: tuple[str, ...]
    inputs_to_parameters: Mapping[str, str]
    inputs_to_buffers: Mapping[str, str]
    buffers_to_mutate: Mapping[str, str]
