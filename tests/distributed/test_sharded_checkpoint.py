"""Checkpoints, which other numbers of ranks read and a killed save leaves as they were; jobs that go on from them."""

import signal
import subprocess
import sys

import pytest
from ranks import HERE, MPIEXEC, needs_mpi, run_ranks

import genesis
import genesis.distributed as dist
from genesis.distributed import checkpoint


@needs_mpi
def test_four_ranks_save_and_others_go_on(tmp_path):
    for ranks, way in ((4, "save"), (2, "killed"), (2, "load"), (1, "load")):
        ended = run_ranks(ranks, "checkpoint_script.py", way, str(tmp_path), deadline=150)
        assert (ended.status == 0) is (way != "killed"), (ranks, way, ended.printed)
        assert ("done" in ended.printed) is (way != "killed"), (ranks, way, ended.printed)


def test_what_is_no_checkpoint(tmp_path):
    dist.init_process_group()
    try:
        with pytest.raises(FileNotFoundError, match="there is none in"):
            checkpoint.load({"x": genesis.ones(1)}, checkpoint_id=tmp_path)
        with pytest.raises(TypeError, match="x is a object; want tensors"):
            checkpoint.save({"x": object()}, checkpoint_id=tmp_path)
        with pytest.raises(ValueError, match=r"two values have the path 'a\.b'"):
            checkpoint.save({"a": {"b": 1}, "a.b": 2}, checkpoint_id=tmp_path)
    finally:
        dist.destroy_process_group()


def restarted(most, place):
    launcher = str(MPIEXEC) if MPIEXEC.exists() else "mpiexec"
    job = [launcher, "-n", "2", sys.executable, "-m", "genesis.distributed", str(HERE / "restarting_script.py"), str(place)]
    command = [sys.executable, "-m", "genesis.distributed", "--restarts", str(most), *job]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=HERE)


@needs_mpi
def test_a_job_that_fails_begins_anew_at_its_last_checkpoint(tmp_path):
    ended = restarted(2, tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("restart 1 goes on at 3") == ended.stdout.count("restart 2 goes on at 5") == 2, ended.stdout
    assert ended.stdout.count("total [12.0, 12.0]") >= 1 and "begins anew (2 of 2)" in ended.stderr


@needs_mpi
def test_a_job_that_fails_too_often_has_failed(tmp_path):
    ended = restarted(0, tmp_path)
    assert ended.returncode != 0 and "rank 1 fails at 3" in ended.stderr and "anew" not in ended.stderr


def test_an_interrupt_ends_a_job_that_would_begin_anew():
    waits = "import time; print('begun', flush=True); time.sleep(60)"
    command = [sys.executable, "-m", "genesis.distributed", "--restarts", "2", sys.executable, "-c", waits]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stdout is not None and supervisor.stdout.readline() == "begun\n"
        supervisor.send_signal(signal.SIGINT)
        try:
            _, said = supervisor.communicate(timeout=30)
        finally:
            supervisor.kill()
    assert supervisor.returncode == 128 + signal.SIGINT and "KeyboardInterrupt" in said and "anew" not in said


def test_objects_are_saved_by_their_state_and_given_it_back(tmp_path, by_references):
    class Counter:
        def __init__(self, count):
            self.count, self.given = count, 0

        def state_dict(self):
            return {"count": self.count, "weight": genesis.ones(2) * self.count}

        def load_state_dict(self, state):
            self.count, self.given = state["count"], state["weight"].sum().item()

    genesis.distributed.init_process_group()
    genesis.distributed.checkpoint.save({"app": Counter(3), "step": 7}, checkpoint_id=tmp_path)
    state = {"app": Counter(0), "step": 0}
    genesis.distributed.checkpoint.load(state, checkpoint_id=tmp_path)
    genesis.distributed.destroy_process_group()
    assert (state["app"].count, state["app"].given, state["step"]) == (3, 6.0, 7)


def test_pytorchs_writers_readers_and_planners(tmp_path):
    state = {"model": {"weight": genesis.arange(4.0)}, "step": 3}
    writer = checkpoint.FileSystemWriter(tmp_path / "a", overwrite=False)
    checkpoint.save(state, storage_writer=writer, planner=checkpoint.DefaultSavePlanner())  # without a process group
    with pytest.raises(RuntimeError, match="already exists"):
        checkpoint.async_save(state, storage_writer=writer)
    other = {"model": {"weight": genesis.zeros(4), "bias": genesis.ones(2)}, "step": 0}
    reader = checkpoint.FileSystemReader(tmp_path / "a")
    with pytest.raises(KeyError, match="bias"):
        checkpoint.load(other, storage_reader=reader)
    checkpoint.load(other, storage_reader=reader, planner=checkpoint.DefaultLoadPlanner(allow_partial_load=True))
    assert (other["model"]["weight"].tolist(), other["model"]["bias"].tolist(), other["step"]) == ([0, 1, 2, 3], [1, 1], 3)
    checkpoint.save_state_dict(other, checkpoint.FileSystemWriter(tmp_path / "b"), no_dist=True)
    checkpoint.load_state_dict(state, checkpoint.FileSystemReader(tmp_path / "b"))
    with pytest.raises(ValueError, match="wants checkpoint_id"):
        checkpoint.save(state)

    class Own(checkpoint.StorageWriter):
        path = tmp_path

    with pytest.raises(TypeError, match="Own; want a FileSystemWriter"):
        checkpoint.save(state, storage_writer=Own())
