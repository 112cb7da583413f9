"""NCCL: jobs whose GPUs are simulated and whose NCCL the host plays, and how the library is found."""

import ctypes
import importlib.util
import subprocess
import sys

import pytest
from ranks import needs_mpi, run_ranks
from test_collectives import checks_of

import genesis.distributed as dist
from genesis.distributed import gpus
from genesis.ir.errors import ArgumentError
from genesis.runtime.cuda import nccl
from genesis.runtime.cuda.gpu import UnavailableError

SCRIPTS = "nccl_calls.py", "nccl_training.py", "nccl_graphs.py", "nccl_failures.py"  # of one job: it takes long to begin
ON_TWO = (  # the others on three ranks
    "check_data_parallel_training", "check_what_is_built_on_collectives", "check_what_came_before_a_failure_stays")


@needs_mpi
@pytest.mark.skipif(importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is not installed")
@pytest.mark.parametrize("ranks", [2, 3])
def test_gpus_give_what_mpi_gives_by_the_calls_that_were_meant(ranks, monkeypatch):
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    checks = [check for script in SCRIPTS for check in checks_of(script)]
    named = [check for check in checks if (check in ON_TWO) is (ranks == 2)]
    ended = run_ranks(ranks, "nccl_script.py", *named, deadline=100)
    missing = [check for check in named if f"passed {check} " not in ended.printed]
    assert ended.status == 0 and not missing, f"{missing}\n{ended.printed}"


def test_one_rank_needs_no_nccl_and_no_gpu():
    code = ("import sys, genesis, genesis.distributed as d; d.init_process_group('cpu:gloo,cuda:nccl'); x = genesis.ones(2);"
            "d.all_reduce(x); print(x.tolist(), d.get_backend(), 'cuda.bindings' in sys.modules)")
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[1.0, 1.0] cpu:mpi,cuda:nccl False"


@pytest.mark.parametrize("name", ["ucc", "cuda:mpi", "mpi,nccl", "cpu:mpi,cpu:gloo", ""])
def test_other_backends_are_refused(name):
    with pytest.raises(ArgumentError, match=r"there is no backend .* want 'mpi', 'nccl', 'cpu:mpi,cuda:nccl', or None"):
        dist.init_process_group(name)


def test_the_wheels_library_is_taken_first(monkeypatch, tmp_path):
    path = tmp_path / "nvidia" / "nccl" / "lib" / nccl.LIBRARY
    asked = []

    def load(name):
        asked.append(name)
        raise OSError("no such file")

    monkeypatch.setattr(ctypes, "CDLL", load)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UnavailableError, match=r"NCCL cannot be loaded \(no such file\); install it: .*nccl"):
        nccl.library()
    path.parent.mkdir(parents=True)
    path.touch()
    monkeypatch.undo()
    monkeypatch.setattr(ctypes, "CDLL", load)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: importlib.machinery.ModuleSpec(name, None, is_package=True))
    spec = importlib.util.find_spec("nvidia")
    spec.submodule_search_locations.append(str(path.parents[2]))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(UnavailableError):
        nccl.library()
    assert asked == [nccl.LIBRARY, str(path)]


def test_a_gpu_is_that_of_the_ranks_number_or_the_one_that_is_named(monkeypatch):
    monkeypatch.setattr(gpus, "gpu_count", lambda: 0)
    with pytest.raises(UnavailableError, match="there is no GPU: "):
        gpus.gpu_of(None, 1)
    monkeypatch.setattr(gpus, "gpu_count", lambda: 4)
    monkeypatch.setattr(gpus, "device_of", lambda name: type("Named", (), {"type": name[:4], "memory": name}))
    assert [gpus.gpu_of(None, 5), gpus.gpu_of(3, 5), gpus.gpu_of("cuda:2", 0)] == ["cuda:1", "cuda:3", "cuda:2"]
    monkeypatch.setattr(gpus, "get_current_gpu", lambda: 2)
    assert [gpus.gpu_of(None, 5), gpus.gpu_of(0, 5)] == ["cuda:2", "cuda:0"]
    with pytest.raises(ArgumentError, match="device_id is 'cpu'; want a GPU"):
        gpus.gpu_of("cpu", 0)
