"""The team: worker threads, parked in native code until a program hands them chunks of a launch.

With workers awake, starting a parallel launch and waiting for its end costs about two cache misses; see `team_ir`. A process
has one team, which serves one run at a time. It grows to the size that programs ask for and starts anew in a forked child.
Nothing depends on its size: the caller runs chunks without a worker.
"""

from __future__ import annotations

import ctypes
from array import array

from genesis.runtime import team_ir
from genesis.runtime.fork import fork_safe_lock
from genesis.runtime.kernel_cache import KernelSource, get_or_compile, text_source
from genesis.runtime.number_of_threads import MOST_WORKERS
from genesis.runtime.system import at_fork, make_condition, make_mutex, start_thread
from genesis.runtime.uninterrupted import uninterrupted

# Not OpenMP: slim images lack it, and a forked child that meets it hangs. Not Numba's portable layer: it takes 100 us a launch
# and aborts under concurrent use.
_LOG_WORDS = 4  # of an entry: two times of two words


class Team:
    """The threads that help the caller, parked in native code. One team, one run at a time."""

    def __init__(self) -> None:
        # Mailboxes are cache lines of their own: a worker that spins on its line disturbs no other.
        words = team_ir.TEAM_MAILBOXES + team_ir.MAILBOX_WORDS * MOST_WORKERS
        self._memory = (ctypes.c_int64 * (words + team_ir.MAILBOX_WORDS))()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._memory))  # immortal: the threads outlive the interpreter
        self.address = -(-ctypes.addressof(self._memory) // 64) * 64
        self.size = 1
        self._log_entries = 0
        self._logs: dict[int, array[int]] = {}  # of workers
        self.lock = fork_safe_lock()
        self.under_way = self.address + 8 * team_ir.TEAM_UNDER_WAY  # the address of a word: not 0 while a program runs
        at_fork(after_in_child=self._disband)

    def grow(self, size: int) -> None:
        """Grow the team to at least `size` workers, including the caller, or as many as the system allows."""
        with self.lock:
            uninterrupted(self._recruit, min(size, MOST_WORKERS), _worker())

    def _recruit(self, size: int, body: int) -> None:
        if self.size == 1 < size:
            self._initialise()
        # One by one, each counted at once: where the system refuses a thread, the team is those before it.
        while self.size < size and self._start(self.size, body):
            self.size += 1
            self._word(team_ir.TEAM_SIZE).value = self.size - 1

    def log(self, entries: int) -> None:
        """Make each worker log its participation in launches, up to `entries` times between two calls of `take_logs`; 0 ends
        that."""
        with self.lock:  # no worker is at work, so none writes
            if entries != self._log_entries:
                for index in self._logs:
                    self._word(_log_word(index)).value = 0
                self._logs.clear()
                self._log_entries = entries
            self.take_logs()

    def take_logs(self) -> list[array[int]]:
        """The workers' logs: seconds and nanoseconds of each start and end. The lock is held."""
        taken = []
        for index in range(1, self.size) if self._log_entries else ():
            log = self._logs.get(index)
            if log is None:
                log = self._logs[index] = array("q", bytes(8 * (2 + _LOG_WORDS * self._log_entries)))
                log[1] = self._log_entries
                self._word(_log_word(index)).value = log.buffer_info()[0]
            taken.append(log[2 : 2 + _LOG_WORDS * log[0]])
            log[0] = 0
        return taken

    def _initialise(self) -> None:
        self._word(team_ir.TEAM_TICKET).value = 1  # odd, as all tickets are: an even word in a mailbox means no work
        make_mutex(self.address + 8 * team_ir.TEAM_MUTEX)
        make_condition(self.address + 8 * team_ir.TEAM_WORK)
        make_condition(self.address + 8 * team_ir.TEAM_DONE)

    def _start(self, index: int, body: int) -> bool:
        mailbox = team_ir.TEAM_MAILBOXES + team_ir.MAILBOX_WORDS * index
        self._word(mailbox + 1).value = self.address
        self._word(mailbox + 2).value = index
        return start_thread(body, ctypes.addressof(self._word(mailbox)))

    def _disband(self) -> None:
        """In a forked child, which has none of the parent's threads."""
        ctypes.memset(self._memory, 0, ctypes.sizeof(self._memory))
        self.size = 1
        self._logs.clear()

    def _word(self, index: int) -> ctypes.c_int64:
        return ctypes.c_int64.from_address(self.address + 8 * index)


def worker_source() -> KernelSource:
    """The loop of a worker."""
    return text_source("genesis_worker", team_ir.worker_ir())


def _log_word(index: int) -> int:
    return team_ir.TEAM_MAILBOXES + team_ir.MAILBOX_WORDS * index + team_ir.MAILBOX_LOG


def _worker() -> int:
    [address] = get_or_compile([worker_source()])
    return address


team = Team()
