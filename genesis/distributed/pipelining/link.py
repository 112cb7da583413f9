"""Messages between two neighbouring stages: activations forward, their gradients backward.

At a boundary the first `ahead` activations are sent alone. Then each activation is exchanged for the gradient of the one sent
`ahead` earlier; the last gradients are sent alone. Both stages follow this order, so there is no deadlock.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from genesis.distributed.messages import recv as receive_now, send as send_now
from genesis.distributed.nn.functional import recv, send, sendrecv
from genesis.distributed.process_group import ProcessGroup
from genesis.functions.from_data import tensor as tensor_from
from genesis.ir.dtypes import DTYPES, DType
from genesis.ir.errors import ArgumentError
from genesis.runtime.devices import CPU, Device
from genesis.tensor.from_python import filled
from genesis.tensor.handle import Tensor

_TAG, _DESCRIPTION = 7041, 4096  # (tag, bytes) of the description of a stage's results, sent once
Tensors = Sequence[Tensor | None]


class Spec(NamedTuple):
    """The shape and dtype of a micro-batch's tensor."""

    dtype: DType
    shape: tuple[int, ...]

    @property
    def has_gradient(self) -> bool:
        return self.dtype.category >= 2

    def __str__(self) -> str:
        return f"{self.dtype.name}{[*self.shape]}"


class Link:
    """One end of a boundary; `is_next`: whether the other stage comes after this one."""

    def __init__(self, group: ProcessGroup, rank: int, is_next: bool, device: Device) -> None:
        self.group, self.peer, self.is_next, self.device = group, group.ranks[rank], is_next, device
        self.specs: list[Spec] | None = None  # of the activations
        self._count = self._ahead = 0
        self._came: dict[int, Tensors] = {}

    def begin(self, count: int, ahead: int) -> None:
        """Begin a step of `count` micro-batches; if `ahead` equals `count`, nothing is exchanged."""
        self._count, self._ahead, self._came = count, ahead, {}

    def agree(self, tensors: Sequence[Tensor] | None = None) -> None:
        """Send the shapes and dtypes of `tensors` to the next stage, or receive them. Done once.

        Raises ValueError for tensors that differ from the agreed description.
        """
        found = None if tensors is None else [Spec(tensor.dtype, tuple(tensor.shape)) for tensor in tensors]
        if self.specs is not None:
            if found is not None and found != self.specs:
                wanted, are = (", ".join(map(str, specs)) for specs in (self.specs, found))
                raise ArgumentError(
                    f"PipelineStage: a micro-batch gives {are}; want {wanted}, as the first one gave: all are of one shape")
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
        """Send a micro-batch's activations or gradients; the tensors received in exchange are kept."""
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
        """A micro-batch's gradients or activations. Gradients of integers are None."""
        if number in self._came:
            return self._came.pop(number)
        return [None if self.is_next and not spec.has_gradient else self._received(spec) for spec in self._known()]

    def _received(self, spec: Spec) -> Tensor:
        return recv(filled(0, spec.shape, spec.dtype, self.device), self.peer, self.group)

    def _known(self) -> list[Spec]:
        assert self.specs is not None
        return self.specs
