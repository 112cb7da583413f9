"""Jobs of which a rank fails: the others do not wait, and say which one it was."""

import functools
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from ranks import needs_mpi, run_ranks

from genesis.distributed import launchers

WAYS = {
    "raises": r"\[rank 1\] ValueError: rank 1 is tired",
    "is killed": r"(?=.*\[rank 1\] was killed by SIGKILL).*rank 0: all_reduce sum of float32\[4\] at \S*failing_script.py:\d+ "
                 r"waits for a rank that is gone.*rank 1: gone: its process was killed",
    "is killed before its message": r"irecv of float32\[4\] from rank 1: rank 1 is gone: its process was killed",
    "exits": r"do not agree.*rank 0: all_reduce sum of float32\[4\] at \S*failing_script.py:\d+.*rank 1: barrier at the end",
    "exits before its message": r"\[rank 0\].*irecv of float32\[4\] from rank 1: rank 1 is at the end of the program",
    "exits before its exchange": r"rank 0: exchange .* at \S*failing_script.py:\d+ waits for a rank that is at the end",
    "leaves": r"\[rank 1\] os\._exit\(0\) while other ranks may wait",
    "fails": r"\[rank 1\] SystemExit: 7",
    "sleeps": r"rank 0: all_reduce sum of float32\[4\] at \S*failing_script.py:\d+ waited 1 s, and rank 1 did not come",
    "has another shape": r"rank 0: all_reduce sum of float32\[4\] at \S*script.py:\d+.*rank 1: .* float32\[5\] at \S*py:\d+",
    "has another list": r"rank 0: all_reduce sum of float32\[3\].*rank 1: all_reduce sum of float32\[1\]",
    "has another dtype": r"rank 0: all_reduce sum of float32\[4\].*rank 1: all_reduce sum of float64\[4\]",
    "has another order": r"rank 0: all_reduce sum of float32\[4\].*rank 1: broadcast_from from 0 of float32\[4\]",
    "has other parts": r"do not agree.*rank 0: all_to_all of float32 rows of \[\].*rank 1: all_to_all of float32 rows of \[\]",
    "is interrupted": r"\[rank 0\] KeyboardInterrupt",
}


@functools.cache
def failed_jobs():
    """How each of the jobs ended. They wait more than they compute: three run at a time."""
    with ThreadPoolExecutor(3) as pool:  # what sleeps does so for 60 seconds
        return dict(zip(WAYS, pool.map(lambda way: run_ranks(2, "failing_script.py", way, deadline=50), WAYS), strict=True))


@needs_mpi
@pytest.mark.parametrize("way", WAYS)
def test_a_job_whose_rank(way):
    ended = failed_jobs()[way]
    assert ended.status != 0, ended.printed
    assert re.search(WAYS[way], ended.printed, re.DOTALL), ended.printed


@needs_mpi
@pytest.mark.parametrize(("way", "wanted"), [
    ("forks one that fails", "the child's status: 3"), ("forks one that raises", "IndexError.*the child's status: 1")])
def test_a_fork_of_a_rank_ends_alone(way, wanted):
    ended = run_ranks(2, "failing_script.py", way)
    assert ended.status == 0 and ended.printed.count("[2.0, 2.0, 2.0, 2.0]") == 2, ended.printed
    assert re.search(wanted, ended.printed, re.DOTALL), ended.printed


@needs_mpi
def test_ranks_wait_at_the_end_for_one_that_comes_later():
    ended = run_ranks(3, "failing_script.py", "ends later", deadline=50)  # two of them know of each other that they are there
    assert ended.status == 0, ended.printed


def test_importing_genesis_loads_nothing_of_it():
    code = "import sys, genesis; print([m for m in sys.modules if 'mpi4py' in m or 'genesis.distributed' in m])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_without_mpiexec_there_is_one_rank_and_mpi_is_not_loaded():
    code = ("import sys, genesis, genesis.distributed as d; d.init_device_mesh('cpu', (1,)); x = genesis.ones(2);"
            "d.all_reduce(x); d.barrier(); print(x.tolist(), d.get_rank(), d.get_world_size(), 'mpi4py.MPI' in sys.modules)")
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[1.0, 1.0] 0 1 False"


def test_the_launcher_tells_how_it_is_used():
    ended = subprocess.run([sys.executable, "-m", "genesis.distributed", "--help"], capture_output=True, text=True, check=True)
    assert "mpiexec -n 4 python -m genesis.distributed script.py" in ended.stdout and not ended.stderr


@needs_mpi
def test_another_launcher_is_refused_before_mpi_starts(monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    for name in ("PMI_SIZE", "PMI_RANK", "PMI_FD", "MPI_LOCALNRANKS"):
        monkeypatch.delenv(name, raising=False)
    code = "import genesis.distributed as d; d.init_process_group()"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    said = r"launcher of Open MPI started 4 ranks, but mpi4py loads MPICH \d\S*, which .* want the mpiexec of MPICH"
    assert ended.returncode == 1 and re.search(said, ended.stderr), ended.stderr


HYDRA, OPEN_MPI = {"MPI_LOCALNRANKS": "2"}, {"OMPI_COMM_WORLD_SIZE": "2", "PMIX_NAMESPACE": "job"}


@pytest.mark.parametrize(("environment", "symbols", "wanted"), [
    (HYDRA, ["ompi_mpi_comm_world"], "launcher of MPICH or Intel MPI started 2 ranks, but mpi4py loads Open MPI v4.1.4, which"),
    (HYDRA | {"PMIX_NAMESPACE": "job"}, ["ompi_mpi_comm_world"], ""), (HYDRA, [], ""), (OPEN_MPI, ["PMIx_Init"], ""),
    (OPEN_MPI, ["ompi_mpi_comm_world"], ""), (HYDRA | OPEN_MPI, [], ""), ({}, [], ""),
    (OPEN_MPI, [], "launcher of Open MPI started 2 ranks, but mpi4py loads Open MPI v4.1.4, which"),
])
def test_a_launcher_fits_the_mpi_that_speaks_its_protocol(environment, symbols, wanted, monkeypatch):
    for name in (*launchers.SIZES, "PMIX_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    def say_version(text, length):
        text.value = b"Open MPI v4.1.4, package: Debian\nmore"

    library = SimpleNamespace(**dict.fromkeys(symbols), MPI_Get_library_version=say_version)
    monkeypatch.setattr(launchers.ctypes, "CDLL", lambda path: library)
    monkeypatch.setattr(launchers.importlib.util, "find_spec", lambda name: SimpleNamespace(origin=name))
    try:
        launchers.check_launcher()
    except RuntimeError as problem:
        assert wanted and wanted in str(problem)
    else:
        assert not wanted
