"""Collectives of tensors on simulated GPUs, by an NCCL that the host plays, against those of MPI. Run by `test_nccl.py`."""

import nccl_calls
import nccl_failures
import nccl_graphs
import nccl_training
from checks import raises, run
from mpi4py import MPI
from nccl_ranks import PLAYED

import genesis.distributed as dist
from genesis.distributed import gpus
from genesis.runtime.cuda.gpu import UnavailableError
from genesis.runtime.cuda.nccl import functions_of
from genesis.runtime.cuda.simulated import SimulatedGpu

FUNCTIONS = functions_of(PLAYED)


def missing_on_the_last_rank():
    if MPI.COMM_WORLD.rank == MPI.COMM_WORLD.size - 1:
        raise UnavailableError("NCCL cannot be loaded")
    return FUNCTIONS


if __name__ == "__main__":
    gpus.library = missing_on_the_last_rank
    raises(RuntimeError, f"rank {MPI.COMM_WORLD.size - 1}: NCCL cannot be loaded", dist.init_process_group, "nccl")
    gpus.library = lambda: FUNCTIONS
    SimulatedGpu.communication_stream = 7
    PLAYED.comes = False
    said = "ncclCommInitRankConfig did not end within 0.2 s: a rank did not come"
    raises(RuntimeError, said, dist.init_process_group, "nccl", timeout=0.2)
    assert PLAYED.taken()[-1] == "CommAbort"
    PLAYED.comes = True
    modules = nccl_calls, nccl_training, nccl_graphs, nccl_failures  # failures last
    run({name: check for module in modules for name, check in vars(module).items()}, backend="nccl")
    assert PLAYED.taken()[-2:] == ["CommFinalize", "CommDestroy"] and not PLAYED.wrongs, PLAYED.wrongs
