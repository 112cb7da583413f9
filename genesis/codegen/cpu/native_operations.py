"""Host operations that have kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from genesis.codegen.cpu import alignments, collective, int8_product, sparse_product
from genesis.codegen.cpu.fourier import launch as fourier
from genesis.codegen.cpu.lapack import launch as lapack
from genesis.codegen.cpu.ordering import permutation
from genesis.codegen.cpu.ordering.argsort import Argsort
from genesis.codegen.cpu.ordering.kth import Kth
from genesis.codegen.cpu.ordering.mode import Mode
from genesis.codegen.cpu.ordering.nonzero import Nonzero
from genesis.codegen.cpu.ordering.topk import TopK
from genesis.codegen.segment import SlotMap
from genesis.ir.graph import Node
from genesis.lower.stages import HostCall
from genesis.ops.registry import PRIMITIVES
from genesis.runtime.kernel_cache import KernelSource
from genesis.runtime.native import Addresses, NativeLaunch


class Native(Protocol):
    """The kernel of a host operation."""

    def sources(self, nodes: Sequence[Node], call: HostCall) -> list[KernelSource]:
        """The source for a call, if there is one."""

    def launches(
        self, nodes: Sequence[Node], call: HostCall, slots: SlotMap, addresses: Addresses, threads: int
    ) -> list[NativeLaunch] | None:
        """The launches of a call; None for one that is left to Python."""


NATIVE: dict[str, Native] = {
    "argsort": Argsort, "kth_index": Kth, "mode_index": Mode, "nonzero_indices": Nonzero, "topk_indices": TopK,
    "csr_matmul": sparse_product, "ctc_loss": alignments, "ctc_posterior": alignments, "fft_complex": fourier,
    "fft_from_real": fourier, "fft_to_real": fourier, "linear_dynamic": int8_product, "permutation": permutation,
    **dict.fromkeys(lapack.ROUTINES, lapack),
}


def native_operation(op: str) -> Native | None:
    """The kernel of a host operation, if there is one."""
    return collective if PRIMITIVES[op].kind == "collective" else NATIVE.get(op)
