"""What checks of NCCL share: the one that the host plays, and inputs that every rank can compute for all ranks."""

import numpy as np
from checks import given
from played_nccl import PlayedNccl

import genesis
import genesis.distributed as dist

PLAYED = PlayedNccl()


def rank():
    return dist.get_rank()


def size():
    return dist.get_world_size()


def mine(shape, dtype=np.float32):
    return genesis.tensor(given(rank(), shape, dtype))
