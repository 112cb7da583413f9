"""Who started this process: an MPI's launcher, known by its environment variables, and whether the MPI here is its own."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import sys

SIZES = "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS"  # set by mpiexec: how many ranks there are
NUMBERS = "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"
_HYDRA, _OPEN_MPI = "MPICH or Intel MPI", "Open MPI"
_VERSION_BYTES = 8192  # MPI_MAX_LIBRARY_VERSION_STRING, the largest


def launched_ranks() -> int:
    """How many ranks the launcher says that it started; 0 without one."""
    slurm = os.environ.get("SLURM_NTASKS", "0") if "SLURM_STEP_ID" in os.environ else "0"
    return max((int(os.environ[name]) for name in SIZES if os.environ.get(name, "").isdecimal()), default=int(slurm))


def launched_rank() -> str:
    """This process's number, as the launcher says it: MPI need not have started."""
    return next((os.environ[name] for name in NUMBERS if name in os.environ), "?")


def check_launcher() -> None:
    """Raise RuntimeError if an MPI's launcher started this process and mpi4py loads another MPI, which would die or be alone.

    The two have to speak one protocol, PMI or PMIx. MPI is loaded for this, and not started.
    """
    hydra, open_mpi = "MPI_LOCALNRANKS" in os.environ, "OMPI_COMM_WORLD_SIZE" in os.environ
    loaded = None if hydra is open_mpi else _loaded()  # of one inside the other, MPI itself has to find out
    if loaded is None:
        return
    speaks = "PMIX_NAMESPACE" in os.environ if _is_open_mpi(loaded) else hydra or hasattr(loaded, "PMIx_Init")
    if not speaks:
        launcher, other = (_HYDRA, _OPEN_MPI) if hydra else (_OPEN_MPI, _HYDRA)
        raise RuntimeError(
            f"init_process_group: the launcher of {launcher} started {launched_ranks()} ranks, but mpi4py loads "
            f"{_version(loaded)}, which another one starts; want the mpiexec of {other}, or MPI4PY_LIBMPI=PATH for mpi4py to "
            "load the launcher's MPI")


def check_meets() -> None:
    """Raise RuntimeError where MPI cannot begin without a launcher, among processes that know each other.

    Open MPI's processes have to be its launcher's.
    """
    if "mpi4py.MPI" in sys.modules:
        raise RuntimeError(
            "init_process_group: mpi4py.MPI was imported before, and has started MPI for this process alone; want "
            "init_process_group() first")
    loaded = _loaded()
    if loaded is not None and _is_open_mpi(loaded):
        raise RuntimeError(
            f"init_process_group: mpi4py loads {_version(loaded)}, whose ranks its mpiexec has to start; want mpiexec -n RANKS "
            f"python -m genesis.distributed SCRIPT, or MPI4PY_LIBMPI=PATH of {_HYDRA}")


def _loaded() -> ctypes.CDLL | None:
    """The MPI of mpi4py, not started; None where it cannot be found. Who imports it says what is missing."""
    with contextlib.suppress(ImportError, RuntimeError):
        found = importlib.util.find_spec("mpi4py.MPI")
        return None if found is None or found.origin is None else ctypes.CDLL(found.origin)
    return None


def _is_open_mpi(loaded: ctypes.CDLL) -> bool:
    return hasattr(loaded, "ompi_mpi_comm_world")


def _version(loaded: ctypes.CDLL) -> str:
    """What an MPI calls itself, and its number."""
    text, length = ctypes.create_string_buffer(_VERSION_BYTES), ctypes.c_int()
    loaded.MPI_Get_library_version(text, ctypes.byref(length))
    line = text.value.decode(errors="replace").splitlines()[0].replace("Version:", "")
    return " ".join(line.split(",")[0].split())
