"""Ranks that meet at an address, with no launcher of MPI: what PyTorch's scripts start themselves, and what `torchrun` does."""

import os
import re
import socket
import subprocess
import sys
import time
import uuid
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch
from ranks import HERE, MPIEXEC, needs_mpi

from genesis.distributed.process_manager import mapping
from genesis.distributed.rendezvous import Rendezvous, answered, rendezvous_of
from genesis.ir.errors import ArgumentError

THERE = {"MASTER_ADDR": "host", "MASTER_PORT": "29500", "WORLD_SIZE": "4", "RANK": "3"}
MARK = "GENESIS_TESTS_OF_RENDEZVOUS"  # in the environment of all processes of a run
needs_mpich = pytest.mark.skipif(not MPIEXEC.exists(), reason="MPICH is not installed: pip install -e '.[test]'")


@pytest.mark.parametrize(("init_method", "size", "rank", "environment", "wanted"), [
    (None, -1, -1, {}, None), (None, 1, 0, THERE, None), (None, -1, -1, {"WORLD_SIZE": "1", "RANK": "0"}, None),
    (None, -1, -1, THERE, Rendezvous(3, 4, "host", 29500)), ("env://", 2, 1, THERE, Rendezvous(1, 2, "host", 29500)),
    ("tcp://10.0.0.1:80", 2, 1, {}, Rendezvous(1, 2, "10.0.0.1", 80)),
    ("tcp://10.0.0.1:80?rank=1&world_size=3", -1, -1, THERE, Rendezvous(1, 3, "10.0.0.1", 80)),
])
def test_where_ranks_meet_is_said_by_arguments_before_the_environment(init_method, size, rank, environment, wanted):
    assert rendezvous_of(init_method, None, size, rank, environment) == wanted


@pytest.mark.parametrize(("init_method", "size", "rank", "environment", "said"), [
    (None, 2, 1, {}, "MASTER_PORT is missing; want"), (None, 2, -1, {**THERE, "RANK": ""}, "RANK is missing"),
    (None, -1, -1, {**THERE, "MASTER_ADDR": ""}, "MASTER_ADDR is missing"), (None, 2, 2, THERE, "rank 2 of 2; want 0 to 1"),
    (None, -1, -1, {**THERE, "MASTER_PORT": "7x"}, "MASTER_PORT is '7x'"), ("mpi://", 2, 1, THERE, "want 'env://', 'tcp://"),
])
def test_a_place_that_is_not_said_whole_is_refused(init_method, size, rank, environment, said):
    with pytest.raises(ArgumentError, match=re.escape(said)):
        rendezvous_of(init_method, None, size, rank, environment)


def test_ranks_of_machines_are_told_as_blocks():
    assert mapping(["a", "b", "b", "a"]) == "(vector,(0,1,1),(1,1,2),(0,1,1))"  # PMI's format: (first, machines, ranks of each)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def test_the_manager_lets_ranks_begin_together_and_refuses_who_does_not_belong():
    port = free_port()
    with ExitStack() as connections:
        def connected(line):
            connection = connections.enter_context(socket.create_connection(("127.0.0.1", port), 10))
            connection.sendall(line)
            return connection.makefile()

        def asked(file, connection, line):
            connection.sendall(line)
            return file.readline()

        own = connections.enter_context(answered(Rendezvous(0, 2, "127.0.0.1", port)))
        own.settimeout(10)
        first = own.makefile()
        assert connected(b"GET / HTTP/1.1\r\n\r\n").readline() == ""  # not a rank, and no harm done
        own.sendall(b"cmd=hello rank=0 size=2 machine=a\n")
        assert connected(b"cmd=hello rank=1 size=3 machine=a\n").readline() == "rank 0 expects 2 ranks, rank 1 expects 3\n"
        assert connected(b"cmd=hello rank=0 size=2 machine=a\n").readline() == "another process is rank 0 there\n"
        gone = connections.enter_context(socket.create_connection(("127.0.0.1", port), 10))
        gone.close()
        other = connections.enter_context(socket.create_connection(("127.0.0.1", port), 10))
        other.sendall(b"cmd=hello rank=1 size=2 machine=b\n")
        second = other.makefile()
        assert first.readline() == second.readline() == "welcome\n"
        assert "value=(vector,(0,1,1),(1,1,1))" in asked(first, own, b"cmd=get kvsname=genesis key=PMI_process_mapping\n")
        assert "rc=0" in asked(first, own, b"cmd=put kvsname=genesis key=card value=port#7$x\n")
        assert asked(second, other, b"cmd=get kvsname=genesis key=card\n").endswith("value=port#7$x\n")
        assert "rc=-1" in asked(second, other, b"cmd=get kvsname=genesis key=none\n")
        own.sendall(b"cmd=barrier_in\n")
        other.sendall(b"cmd=barrier_in\n")
        assert first.readline() == second.readline() == "cmd=barrier_out rc=0\n"
        own.sendall(b"cmd=barrier_in\n")
        other.close()
        second.close()
        assert first.readline() == ""  # it would wait for ever for the one that has gone


def content(path):
    try:
        return path.read_bytes()
    except OSError:  # the process has just ended
        return b""


def run(*command):
    """Run a command under the door, without what a launcher or another test has set; none of its processes is left."""
    name = uuid.uuid4().hex
    environment = {name: value for name, value in os.environ.items() if name not in THERE and "NUM_THREADS" not in name}
    environment["PYTHONPATH"] = os.pathsep.join([str(HERE.parent.parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "genesis.as_torch", *command]
    ended = subprocess.run(
        command, capture_output=True, text=True, env=environment | {MARK: name}, cwd=HERE, timeout=100)
    end = time.monotonic() + 10
    while left := [path for path in Path("/proc").glob("[0-9]*/environ") if f"{MARK}={name}".encode() in content(path)]:
        assert time.monotonic() < end, f"processes that were left: {left}"
        time.sleep(0.05)
    return ended


def trained():
    """What two steps on the whole batch make of the parameters: PyTorch's, of one process."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    for number, parameter in enumerate(model.parameters()):
        parameter.data = torch.linspace(-0.5, 0.5 + number, parameter.numel()).view_as(parameter)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.linspace(-1, 1, 12).view(4, 3)).square().mean().backward()
        optimizer.step()
    return [x for parameter in model.parameters() for x in parameter.flatten().tolist()]


@needs_mpi
@needs_mpich
@pytest.mark.parametrize("command", [
    ["spawning_script.py", "environment"], ["spawning_script.py", "file"],
    ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", "spawning_script.py"],
], ids=["spawn", "file", "torchrun"])
def test_ranks_train_as_one_process_does(command):
    ended = run(*command)
    assert ended.returncode == 0, ended.stderr
    lines = re.findall(r"^(\d) 2 (.*)$", ended.stdout, re.MULTILINE)
    assert sorted(rank for rank, _ in lines) == ["0", "1"]
    for _, numbers in lines:
        assert [float(number) for number in numbers.split()] == pytest.approx(trained(), rel=1e-5, abs=1e-6)


@needs_mpi
@needs_mpich
@pytest.mark.parametrize(("way", "said"), [
    ("raises", "Process 1 terminated with the following error:(.|\n)*ValueError: rank 1 is tired"),
    ("disagrees", "rank 0 expects 2 ranks, rank 1 expects 3, at 127.0.0.1"),
])
def test_a_rank_that_fails_is_told_by_the_process_that_started_it(way, said):
    ended = run("spawning_script.py", way)
    assert ended.returncode == 1 and re.search(said, ended.stderr), ended.stderr
