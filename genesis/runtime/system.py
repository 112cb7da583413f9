"""The runtime's calls to the operating system, from Python; `system_ir` has those from machine code.

Nothing else in the runtime names a system. Memory, threads, locks and the clock are CPython's, which has them on every system.
Linux alone gives placement, huge pages and locks of open files; with GENESIS_PORTABLE=1 they are not used.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import platform
import select
import signal
import struct
import sys
from collections.abc import Callable, Iterator

if sys.platform != "win32":
    import fcntl

IS_LINUX = sys.platform == "linux" and os.environ.get("GENESIS_PORTABLE") != "1"
IS_ARM = platform.machine().lower() in ("aarch64", "arm64")
HAS_DIRECTORY_DESCRIPTORS = os.open in os.supports_dir_fd  # files can be opened relative to a directory that is open
CAN_POLL_PIPES = hasattr(select, "poll")  # on Windows, `select` knows sockets alone

_ASSUMED_MEMORY = 4 << 30  # bytes, where the system does not say
HAS_FILE_LOCKS = IS_LINUX and hasattr(fcntl, "F_OFD_SETLK") and sys.maxsize > 1 << 32
_FILE_LOCK = struct.Struct("hhqqi4x")  # Linux' struct flock: type, whence, start, length, process
_NO_THREAD = ctypes.c_ulong(-1).value

at_fork: Callable[..., None] = getattr(os, "register_at_fork", lambda **hooks: None)

# CPython's functions, called without the GIL: unlike `threading`'s locks, they run no handlers while they wait.
python = ctypes.CDLL("python", handle=ctypes.pythonapi._handle)
python.PyThread_allocate_lock.restype = python.PyMem_RawMalloc.restype = ctypes.c_void_p
python.PyThread_acquire_lock.argtypes = [ctypes.c_void_p, ctypes.c_int]
python.PyMem_RawMalloc.argtypes = [ctypes.c_size_t]
for _name in ("PyThread_release_lock", "PyThread_free_lock", "PyMem_RawFree"):
    getattr(python, _name).argtypes = [ctypes.c_void_p]
    getattr(python, _name).restype = None
ctypes.pythonapi.PyThread_start_new_thread.restype = ctypes.c_ulong
ctypes.pythonapi.PyThread_start_new_thread.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
if IS_LINUX:
    _libc = ctypes.CDLL(None)
    _libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


# ---- processors and memory ----
def available_processors() -> int:
    """The processors the operating system lets this process run on; at least 1."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def machine_memory() -> int:
    """The bytes of the machine's memory."""
    if not hasattr(os, "sysconf"):
        return _ASSUMED_MEMORY
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def allocate(nbytes: int, alignment: int) -> int:
    """The address of new memory, which `free` gives back; 0 where there is none. `alignment` is a power of two."""
    start = python.PyMem_RawMalloc(nbytes + alignment + 8)
    if not start:
        return 0
    aligned = -(-(start + 8) // alignment) * alignment
    ctypes.c_size_t.from_address(aligned - 8).value = start
    return aligned


def free(address: int) -> None:
    """Give memory back that `allocate` returned."""
    python.PyMem_RawFree(ctypes.c_size_t.from_address(address - 8).value)


def want_huge_pages(address: int, nbytes: int) -> None:
    """A hint: one page fault per 2 MiB at the first touch instead of 512."""
    if IS_LINUX and hasattr(mmap, "MADV_HUGEPAGE"):
        _libc.madvise(address, nbytes, mmap.MADV_HUGEPAGE)


# ---- threads, and the mutexes and conditions that `system_ir` waits with, by their addresses ----
def start_thread(body: int, argument: int) -> bool:
    """Start a thread that runs a native function of one word; False if the system refuses."""
    with _signals_blocked():
        return bool(ctypes.pythonapi.PyThread_start_new_thread(body, argument) != _NO_THREAD)


@contextlib.contextmanager
def _signals_blocked() -> Iterator[None]:
    """Threads inherit the mask: only the interpreter's own threads may receive signals."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)


def make_mutex(address: int) -> None:
    if not (lock := python.PyThread_allocate_lock()):
        raise MemoryError("no memory for a lock")
    ctypes.c_void_p.from_address(address).value = lock


def make_condition(address: int) -> None:
    ctypes.c_void_p.from_address(address).value = None  # nobody sleeps


@contextlib.contextmanager
def locked(mutex: int) -> Iterator[None]:
    """Hold the mutex at an address."""
    lock = ctypes.c_void_p.from_address(mutex).value
    python.PyThread_acquire_lock(lock, 1)
    try:
        yield
    finally:
        python.PyThread_release_lock(lock)


def wake_all(condition: int) -> None:
    """Wake the threads that sleep on a condition, whose mutex is held."""
    first = ctypes.c_void_p.from_address(condition)
    while sleeper := first.value:
        first.value = ctypes.c_void_p.from_address(sleeper).value
        python.PyThread_release_lock(ctypes.c_void_p.from_address(sleeper + 8).value)


# ---- locks on an open file, or on bytes of it, which end with it ----
def lock_file(fd: int) -> None:
    """Wait for the lock on a file as a whole. Raises OSError where there are no such locks."""
    if sys.platform == "win32":
        raise OSError("this system has no locks on whole files")
    fcntl.flock(fd, fcntl.LOCK_EX)


def lock_byte(fd: int, offset: int) -> bool:
    """Take the lock; False if another open file has it. True as well where there are no such locks."""
    return _ask(fd, "F_OFD_SETLK", offset, "F_WRLCK") is not None


def unlock_byte(fd: int, offset: int) -> None:
    _ask(fd, "F_OFD_SETLK", offset, "F_UNLCK")


def is_byte_free(fd: int, offset: int) -> bool:
    """Whether no other open file has the lock now."""
    answer = _ask(fd, "F_OFD_GETLK", offset, "F_WRLCK")
    return not answer or _FILE_LOCK.unpack(answer)[0] == fcntl.F_UNLCK


def _ask(fd: int, command: str, offset: int, kind: str) -> bytes | None:
    """The answer to a command; None if another open file has the lock, b"" if there are no locks."""
    if not HAS_FILE_LOCKS:
        return b""
    request = _FILE_LOCK.pack(getattr(fcntl, kind), os.SEEK_SET, offset, 1, 0)
    try:
        return fcntl.fcntl(fd, getattr(fcntl, command), request)
    except OSError as problem:
        return None if problem.errno in (errno.EAGAIN, errno.EACCES) else b""
