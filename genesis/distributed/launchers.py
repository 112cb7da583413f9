"""Who started this process: an MPI's launcher, known by its environment variables, and whether the MPI here is its own."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os

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
    found = None
    with contextlib.suppress(ImportError, RuntimeError):  # who imports it says what is missing
        found = importlib.util.find_spec("mpi4py.MPI")
    if hydra is open_mpi or found is None or found.origin is None:  # of one inside the other, MPI itself has to find out
        return
    loaded = ctypes.CDLL(found.origin)
    is_open_mpi = hasattr(loaded, "ompi_mpi_comm_world")
    speaks = "PMIX_NAMESPACE" in os.environ if is_open_mpi else hydra or hasattr(loaded, "PMIx_Init")
    if not speaks:
        launcher, other = (_HYDRA, _OPEN_MPI) if hydra else (_OPEN_MPI, _HYDRA)
        raise RuntimeError(
            f"init_process_group: the launcher of {launcher} started {launched_ranks()} ranks, but mpi4py loads "
            f"{_version(loaded)}, which another one starts; want the mpiexec of {other}, or MPI4PY_LIBMPI=PATH for mpi4py to "
            "load the launcher's MPI")


def _version(loaded: ctypes.CDLL) -> str:
    """What an MPI calls itself, and its number."""
    text, length = ctypes.create_string_buffer(_VERSION_BYTES), ctypes.c_int()
    loaded.MPI_Get_library_version(text, ctypes.byref(length))
    line = text.value.decode(errors="replace").splitlines()[0].replace("Version:", "")
    return " ".join(line.split(",")[0].split())
