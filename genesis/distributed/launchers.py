"""Detects the MPI launcher of this process by environment variables, and whether the installed MPI matches it."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import sys

SIZES = "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS"  # the number of ranks, set by mpiexec
NUMBERS = "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"
_HYDRA, _OPEN_MPI = "MPICH or Intel MPI", "Open MPI"
_VERSION_BYTES = 8192  # MPI_MAX_LIBRARY_VERSION_STRING, the largest


def launched_ranks() -> int:
    """The launcher's number of ranks; 0 without one."""
    slurm = os.environ.get("SLURM_NTASKS", "0") if "SLURM_STEP_ID" in os.environ else "0"
    return max((int(os.environ[name]) for name in SIZES if os.environ.get(name, "").isdecimal()), default=int(slurm))


def launched_rank() -> str:
    """This process's rank according to the launcher, available before MPI starts."""
    return next((os.environ[name] for name in NUMBERS if name in os.environ), "?")


def check_launcher() -> None:
    """Raise RuntimeError if mpi4py's MPI does not match the launcher: it would crash or run as a single rank.

    The two must share a protocol, PMI or PMIx. MPI is loaded for this, but not started.
    """
    hydra, open_mpi = "MPI_LOCALNRANKS" in os.environ, "OMPI_COMM_WORLD_SIZE" in os.environ
    loaded = None if hydra is open_mpi else _loaded()  # launchers nested in each other: MPI itself must detect it
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
    """Raise RuntimeError if MPI cannot start among processes without a launcher.

    Open MPI requires its launcher.
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
    """mpi4py's MPI library, not started; None if not found. Importing mpi4py reports what is missing."""
    with contextlib.suppress(ImportError, RuntimeError):
        found = importlib.util.find_spec("mpi4py.MPI")
        return None if found is None or found.origin is None else ctypes.CDLL(found.origin)
    return None


def _is_open_mpi(loaded: ctypes.CDLL) -> bool:
    return hasattr(loaded, "ompi_mpi_comm_world")


def _version(loaded: ctypes.CDLL) -> str:
    """An MPI's name and version."""
    text, length = ctypes.create_string_buffer(_VERSION_BYTES), ctypes.c_int()
    loaded.MPI_Get_library_version(text, ctypes.byref(length))
    line = text.value.decode(errors="replace").splitlines()[0].replace("Version:", "")
    return " ".join(line.split(",")[0].split())
