"""Distributed computing on one or more machines: PyTorch's API, on MPI.

A script runs on every rank: `mpiexec -n 4 python -m genesis.distributed script.py`. Without mpiexec there is a single rank and
no communication, unless processes meet at an address. `init_process_group` loads MPI only if there are several ranks.

>>> genesis.distributed.init_process_group()
>>> x = genesis.tensor([1.0, 2.0])
>>> genesis.distributed.all_reduce(x)
>>> x, genesis.distributed.get_world_size()
(tensor([1., 2.]), 1)
>>> genesis.distributed.destroy_process_group()

The examples of functions leave out the first line and the last one.
"""

from genesis.distributed import checkpoint, communication_hooks, fsdp, futures, nn, optim, pipelining, tensor
from genesis.distributed.collectives import (
    ReduceOp, all_gather, all_gather_coalesced, all_gather_into_tensor, all_gather_single, all_reduce, all_reduce_coalesced,
    all_to_all, all_to_all_single, barrier, broadcast, gather, monitored_barrier, reduce, reduce_scatter,
    reduce_scatter_single, reduce_scatter_tensor, scatter,
)
from genesis.distributed.communication_hooks import BuiltinCommHookType, GradBucket
from genesis.distributed.data_parallel import DistributedDataParallel
from genesis.distributed.device_mesh import DeviceMesh, init_device_mesh
from genesis.distributed.fully_sharded import FullyShardedDataParallel
from genesis.distributed.initialization import (
    destroy_process_group, init_process_group, is_available, is_gloo_available, is_mpi_available, is_nccl_available,
)
from genesis.distributed.messages import P2POp, batch_isend_irecv, irecv, isend, recv, send
from genesis.distributed.objects import (
    all_gather_object, broadcast_object_list, gather_object, recv_object_list, scatter_object_list, send_object_list,
)
from genesis.distributed.process_group import (
    NON_GROUP_MEMBER, ProcessGroup, get_backend, get_global_rank, get_group_rank, get_node_local_rank, get_pg_count,
    get_process_group_ranks, get_rank, get_world_size, is_initialized,
)
from genesis.distributed.rendezvous import register_rendezvous_handler
from genesis.distributed.stores import (
    DistNetworkError, DistStoreError, FileStore, HashStore, PrefixStore, QueueEmptyError, Store, TCPStore,
)
from genesis.distributed.subgroups import new_group, new_subgroups, new_subgroups_by_enumeration, split_group
from genesis.distributed.sync_batch_norm import SyncBatchNorm
from genesis.distributed.work import Work
from genesis.runtime.groups import CollectiveError

DistError = CollectiveError

__all__ = [
    "NON_GROUP_MEMBER", "BuiltinCommHookType", "CollectiveError", "DeviceMesh", "DistError", "DistNetworkError",
    "DistStoreError", "DistributedDataParallel", "FileStore", "FullyShardedDataParallel", "GradBucket",
    "HashStore", "P2POp", "PrefixStore", "ProcessGroup", "QueueEmptyError", "ReduceOp", "Store", "SyncBatchNorm", "TCPStore",
    "Work", "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object", "all_gather_single",
    "all_reduce", "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast",
    "broadcast_object_list", "checkpoint", "communication_hooks", "destroy_process_group", "fsdp", "futures", "gather",
    "gather_object", "get_backend", "get_global_rank", "get_group_rank", "get_node_local_rank", "get_pg_count",
    "get_process_group_ranks", "get_rank", "get_world_size", "init_device_mesh", "init_process_group", "irecv", "is_available",
    "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available", "isend", "monitored_barrier", "new_group",
    "new_subgroups", "new_subgroups_by_enumeration", "nn", "optim", "pipelining", "recv", "recv_object_list", "reduce",
    "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor", "register_rendezvous_handler", "scatter",
    "scatter_object_list", "send", "send_object_list", "split_group", "tensor",
]
