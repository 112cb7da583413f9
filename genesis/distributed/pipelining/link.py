"""What passes between two neighbouring stages: activations one way, their gradients the other.

Of a boundary's messages the first `ahead` activations go alone. From then on each activation is exchanged for the gradient of
the one that went `ahead` before; the last gradients come alone. Both stages know this order, and wait for nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from genesis.distributed.messages import recv as receive_now
from genesis.distributed.messages import send as send_now
from genesis.distributed.nn.functional import recv, send, sendrecv
from genesis.distributed.process_group import ProcessGroup
from genesis.functions.from_data import tensor as tensor_from
from genesis.ir.dtypes import DTYPES, DType
from genesis.ir.errors import ArgumentError
from genesis.ir.replayable import replayable_module
from genesis.runtime.devices import CPU, Device
from genesis.tensor.dispatch import filled
from genesis.tensor.handle import Tensor

_TAG, _DESCRIPTION = 7041, 4096  # bytes of what a stage says of its results, once
Tensors = Sequence[Tensor | None]


class Spec(NamedTuple):
    """A tensor of a micro-batch."""

    dtype: DType
    shape: tuple[int, ...]

    @property
    def has_gradient(self) -> bool:
        return self.dtype.category >= 2

    def __str__(self) -> str:
        return f"{self.dtype.name}{[*self.shape]}"


class Link:
    """One end of a boundary: `is_next` says whether the other stage comes after this one."""

    def __init__(self, group: ProcessGroup, rank: int, is_next: bool, device: Device) -> None:
        self.group, self.peer, self.is_next, self.device = group, group.ranks[rank], is_next, device
        self.specs: list[Spec] | None = None  # of what goes forward
        self._count = self._ahead = 0
        self._came: dict[int, Tensors] = {}

    def begin(self, count: int, ahead: int) -> None:
        """A step of so many micro-batches begins; with `ahead` of as many, nothing is exchanged."""
        self._count, self._ahead, self._came = count, ahead, {}

    def agree(self, tensors: Sequence[Tensor] | None = None) -> None:
        """Have the next stage know of which shapes and dtypes `tensors` are; or hear that. Done once.

        Raises ValueError for tensors that differ from what it has been told.
        """
        found = None if tensors is None else [Spec(tensor.dtype, tuple(tensor.shape)) for tensor in tensors]
        if self.specs is not None:
            if found is not None and found != self.specs:
                told, are = (", ".join(map(str, specs)) for specs in (self.specs, found))
                raise ArgumentError(
                    f"PipelineStage: a micro-batch gives {are}; want {told}, as the first one gave: all are of one shape")
            return
        if found is not None:
            text = json.dumps([[spec.dtype.name, spec.shape] for spec in found]).encode()
            if len(text) > _DESCRIPTION:
                raise ArgumentError(f"PipelineStage: a stage gives {len(found)} tensors; want fewer")
            said = np.frombuffer(text.ljust(_DESCRIPTION), np.uint8).copy()
            send_now(tensor_from(said, device=CPU), self.peer, self.group, _TAG)
        else:
            heard = tensor_from(np.zeros(_DESCRIPTION, np.uint8), device=CPU)
            receive_now(heard, self.peer, self.group, _TAG)
            found = [Spec(DTYPES[name], tuple(shape)) for name, shape in json.loads(heard.numpy().tobytes())]
        self.specs = found

    def give(self, number: int, tensors: Tensors) -> None:
        """Send the activations, or the gradients, of a micro-batch; what the other end gives for them is kept."""
        other = number - self._ahead if self.is_next else number + self._ahead
        is_exchange = 0 <= other < self._count
        came: list[Tensor | None] = []
        for tensor, spec in zip(tensors, self._known(), strict=True):
            if is_exchange and spec.has_gradient:
                assert tensor is not None
                came.append(sendrecv(tensor, self.peer, self.group))
                continue
            if tensor is not None:
                send(tensor, self.peer, self.group)
            came.append(self._received(spec) if is_exchange and not self.is_next else None)
        if is_exchange:
            self._came[other] = came

    def take(self, number: int) -> Tensors:
        """The gradients, or the activations, of a micro-batch. There is None for the gradient of integers."""
        if number in self._came:
            return self._came.pop(number)
        return [None if self.is_next and not spec.has_gradient else self._received(spec) for spec in self._known()]

    def _received(self, spec: Spec) -> Tensor:
        return recv(filled(0, spec.shape, spec.dtype, self.device), self.peer, self.group)

    def _known(self) -> list[Spec]:
        assert self.specs is not None
        return self.specs


replayable_module(__name__)
