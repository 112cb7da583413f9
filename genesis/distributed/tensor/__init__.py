"""Distributed tensors on a mesh: placements, DTensor, and tensor-parallel layers."""

from genesis.distributed.device_mesh import DeviceMesh, _mesh_of, init_device_mesh
from genesis.distributed.tensor import parallel
from genesis.distributed.tensor.creation import empty, full, ones, rand, randn, zeros
from genesis.distributed.tensor.dtensor import DistributedParameter, DTensor, distribute_tensor
from genesis.distributed.tensor.operations import implicit_replication
from genesis.distributed.tensor.parallel.style import distribute_module
from genesis.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from genesis.serialization import add_safe_globals
from genesis.tensor.composite import _rebuilt

__all__ = [
    "DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor", "empty",
    "full", "implicit_replication", "init_device_mesh", "ones", "parallel", "rand", "randn", "zeros",
]

add_safe_globals([DTensor, DistributedParameter, DeviceMesh, Partial, Replicate, Shard, _mesh_of, _rebuilt])
