"""Ranks that PyTorch's script starts itself, under the door: `spawn WAY`, or started by `torchrun` without an argument."""

import os
import socket
import sys
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train():
    """Two steps on this rank's part of the batch; the parameters after them."""
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)))
    for number, parameter in enumerate(model.parameters()):
        with torch.no_grad():
            parameter.copy_(torch.linspace(-0.5, 0.5 + number, parameter.numel()).view_as(parameter))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batch = torch.linspace(-1, 1, 12).view(4, 3)[dist.get_rank()::dist.get_world_size()]
    for _ in range(2):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
    told = dist.get_rank(), dist.get_world_size(), *[x for p in model.parameters() for x in p.flatten().tolist()]
    sys.stdout.write(" ".join(map(str, told)) + "\n")  # in one piece
    sys.stdout.flush()


def rank_of(rank, size, port, directory, way):
    """What each process does."""
    if way == "environment":
        os.environ |= {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
        dist.init_process_group("gloo", rank=rank, world_size=size)
    elif way == "file":
        dist.init_process_group("gloo", init_method=f"file://{directory}/meeting", rank=rank, world_size=size)
    else:
        other = size + (way == "disagrees" and rank == 1)
        dist.init_process_group(
            "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=other, timeout=timedelta(seconds=20))
    train()
    if way == "raises" and rank == 1:
        raise ValueError("rank 1 is tired")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    if len(sys.argv) == 1:
        dist.init_process_group("gloo")
        train()
    else:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        with tempfile.TemporaryDirectory() as directory:
            mp.spawn(rank_of, args=(2, port, directory, sys.argv[1]), nprocs=2)
