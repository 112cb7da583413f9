"""Stores: key-value stores shared by the processes of a job.

Operations act on a mapping of bytes in this process, in a file, or in a server process.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import socket
import socketserver
import threading
import time
import uuid
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from genesis.runtime.groups import CollectiveError
from genesis.runtime.system import lock_file

TIMEOUT = datetime.timedelta(seconds=300)
_LONGEST_WAIT = 0.05  # seconds between polls
_REACHED = 2.0  # seconds allowed for connecting
_Values = dict[str, bytes]


class DistStoreError(CollectiveError):
    """A key was not set in time."""


class DistNetworkError(DistStoreError):
    """A store's master could not be reached."""


class QueueEmptyError(DistStoreError):
    """A queue of a store has no value."""


class Store(ABC):
    """The base of stores. Values are text or bytes, and are returned as bytes.

    >>> store = genesis.distributed.HashStore()
    >>> store.set("step", "7")
    >>> store.get("step"), store.add("ranks", 1), store.add("ranks", 2), store.num_keys()
    (b'7', 1, 3, 2)
    """

    def __init__(self) -> None:
        self._timeout = TIMEOUT

    @abstractmethod
    def _do(self, what: str, *given: Any) -> Any:
        """Perform the operation `what`; the first argument is a key."""

    @property
    def timeout(self) -> datetime.timedelta:
        """The timeout of `get` and `wait`."""
        return self._timeout

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        """Set the timeout of `get` and `wait`."""
        self._timeout = timeout

    def set(self, key: str, value: str | bytes) -> None:
        """Set a value, replacing an existing one."""
        self._do("set", key, _bytes(value))

    def get(self, key: str) -> bytes:
        """Wait for a key and return its value. Raises DistStoreError on timeout."""
        self.wait([key])
        return bytes(self._do("get", key))

    def add(self, key: str, amount: int) -> int:
        """Add to a number, by default 0; returns the sum."""
        return int(self._do("add", key, str(amount).encode()))

    def append(self, key: str, value: str | bytes) -> None:
        """Append to a value."""
        self._do("append", key, _bytes(value))

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Set `desired_value` if the value is `expected_value`, or if there is none and "" is expected.

        Returns the resulting value, or `expected_value` if there is none.
        """
        return bytes(self._do("compare_set", key, _bytes(expected_value), _bytes(desired_value)))

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are set."""
        return all(self._do("check", key) for key in keys)

    def delete_key(self, key: str) -> bool:
        """Delete a key; returns whether it was set."""
        return bool(self._do("delete", key))

    def num_keys(self) -> int:
        """The number of keys."""
        return int(self._do("num_keys"))

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Set several values."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Wait for several keys and return their values."""
        return [self.get(key) for key in keys]

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Append a value to the queue of a name."""
        self.set(f"{key}/{self.add(f'{key}/pushed', 1)}", value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first value of a queue; with `block`, wait for one.

        Raises QueueEmptyError if there is none, DistStoreError on timeout.
        """
        name, end = f"{key}/popped", time.monotonic() + self._timeout.total_seconds()
        while True:
            before = self.get(name) if self.check([name]) else b""
            count = int(before.partition(b" ")[0] or 0)
            if count < self.add(f"{key}/pushed", 0):
                mine = f"{count + 1} {uuid.uuid4()}".encode()  # a number alone would not tell which process took the value
                if self.compare_set(name, before, mine) == mine:
                    value = self.get(f"{key}/{count + 1}")
                    self.delete_key(f"{key}/{count + 1}")
                    return value
            elif not block:
                raise QueueEmptyError(f"queue_pop: the queue {key!r} is empty")
            elif time.monotonic() > end:
                raise DistStoreError(f"queue_pop: timeout after {self._timeout.total_seconds():g} s, queue: {key}")
            else:
                time.sleep(_LONGEST_WAIT)

    def queue_len(self, key: str) -> int:
        """The number of values in a queue."""
        popped = self.get(f"{key}/popped") if self.check([f"{key}/popped"]) else b"0"
        return self.add(f"{key}/pushed", 0) - int(popped.partition(b" ")[0])

    def has_extended_api(self) -> bool:
        """Whether `append`, `multi_get` and `multi_set` are supported."""
        return True

    def wait(self, keys: Sequence[str], timeout: datetime.timedelta | None = None) -> None:
        """Wait until all keys are set. Raises DistStoreError on timeout."""
        allowed = self._timeout if timeout is None else timeout
        end, pause = time.monotonic() + allowed.total_seconds(), 0.001
        while not self.check(keys):
            if time.monotonic() > end:
                raise DistStoreError(f"wait timeout after {allowed.total_seconds():g} s, keys: {', '.join(keys)}")
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_WAIT)


class HashStore(Store):
    """A store within this process, for its threads."""

    def __init__(self) -> None:
        super().__init__()
        self._values: _Values = {}
        self._lock = threading.Lock()

    def _do(self, what: str, *given: Any) -> Any:
        with self._lock:
            return _DEEDS[what](self._values, *given)


class FileStore(Store):
    """A store in a shared file, under a file lock. The creator of the file removes it."""

    def __init__(self, file_name: str | os.PathLike[str], world_size: int = -1) -> None:
        super().__init__()
        self.path = os.fspath(file_name)

    def _do(self, what: str, *given: Any) -> Any:
        with open(self.path, "a+b") as file:
            lock_file(file.fileno())
            file.seek(0)
            before = _plain(file.read())
            values = {key: _bytes(value) for key, value in before.items()}
            result = _DEEDS[what](values, *given)
            after = {key: _text(value) for key, value in values.items()}
            if after != before:
                file.truncate(0)
                file.write(json.dumps(after).encode())
            return result


class TCPStore(Store):
    """A store in the process created with `is_master`, to which the others connect.

    It listens as long as the master's store lives. `port` 0 chooses a free one, see the attribute; `master_listen_fd` is the
    file descriptor of a listening socket. With `wait_for_workers` all wait for `world_size` processes. Raises DistStoreError if
    the master, or the others, are not there in time, and if the port is in use.
    """

    def __init__(
        self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False,
        timeout: datetime.timedelta = TIMEOUT, wait_for_workers: bool = True, multi_tenant: bool = False,
        master_listen_fd: int | None = None, use_libuv: bool = True,
    ) -> None:
        super().__init__()
        self.host, self.port = host_name, port
        self._server: socketserver.ThreadingTCPServer | None = None
        self._lock = threading.Lock()
        self.set_timeout(timeout)
        if is_master:
            self._server = _Server(port, master_listen_fd)
            self.port = self._server.server_address[1]
            self._server.thread.start()
            weakref.finalize(self, self._server.end).atexit = False
        end = time.monotonic() + timeout.total_seconds()
        connection = reached(host_name, self.port, end)
        if connection is None:
            raise DistNetworkError(f"TCPStore: nobody is at {host_name}:{self.port}")
        self._file = connection.makefile("rwb")
        if world_size and wait_for_workers:
            self.add(_CAME, 1)
            while (came := self.add(_CAME, 0)) < world_size:
                if time.monotonic() > end:
                    raise DistStoreError(f"TCPStore: {came} of {world_size} processes came to {host_name}:{self.port} in time")
                time.sleep(_LONGEST_WAIT)

    def _do(self, what: str, *given: Any) -> Any:
        with self._lock:
            self._file.write(_line([what, *map(_text, given)]))
            self._file.flush()
            found = self._file.readline()
        if not found:
            raise DistNetworkError(f"TCPStore: the master at {self.host}:{self.port} has gone")
        return _bytes(value) if isinstance(value := json.loads(found), str) else value


class PrefixStore(Store):
    """A store within another, with prefixed keys."""

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        self.prefix, self.underlying_store = prefix, store
        self._timeout = store.timeout

    def _do(self, what: str, *given: Any) -> Any:
        return self.underlying_store._do(what, *[f"{self.prefix}/{key}" for key in given[:1]], *given[1:])


def reached(host: str, port: int, end: float) -> socket.socket | None:
    """A connection to the address, retried until `end`."""
    while True:
        with contextlib.suppress(OSError):
            connection = socket.create_connection((host, port), _REACHED)
            connection.settimeout(None)
            return connection
        if time.monotonic() > end:
            return None
        time.sleep(_LONGEST_WAIT)


def _set(values: _Values, key: str, value: bytes) -> None:
    values[key] = value


def _add(values: _Values, key: str, amount: bytes) -> bytes:
    values[key] = str(int(values.get(key, b"0")) + int(amount)).encode()
    return values[key]


def _append(values: _Values, key: str, value: bytes) -> None:
    values[key] = values.get(key, b"") + value


def _compare_set(values: _Values, key: str, expected: bytes, desired: bytes) -> bytes:
    if values.get(key, b"") == expected:
        values[key] = desired
    return values.get(key, expected)


_DEEDS: dict[str, Callable[..., Any]] = {
    "set": _set, "get": _Values.__getitem__, "add": _add, "append": _append, "compare_set": _compare_set,
    "check": _Values.__contains__, "delete": lambda values, key: values.pop(key, None) is not None, "num_keys": len,
}
_CAME = "genesis/came"


class _Server(socketserver.ThreadingTCPServer):
    """Serves one store to the other processes."""

    allow_reuse_address = daemon_threads = True

    def __init__(self, port: int, listening: int | None) -> None:
        super().__init__(("", port), _Answer, bind_and_activate=False)
        try:
            if listening is not None:
                self.socket.close()
                self.socket = socket.socket(fileno=listening)
                self.server_address = self.socket.getsockname()
            else:
                self.server_bind()
                self.server_activate()
        except OSError as problem:
            self.server_close()
            raise DistNetworkError(f"TCPStore: cannot listen at port {port}: {problem}") from None
        self.store = HashStore()
        self.thread = threading.Thread(target=self.serve_forever, name="store", daemon=True)

    def end(self) -> None:
        """Stop listening; existing connections are served to their end."""
        if threading.current_thread() is self.thread:  # a finalizer within it, which cannot wait for its end
            return
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # what waits for a connection looks up
        self.shutdown()
        self.server_close()


class _Answer(socketserver.StreamRequestHandler):
    """Handles one client's requests, line by line."""

    def handle(self) -> None:
        server: Any = self.server
        for line in self.rfile:
            what, *given = json.loads(line)
            result = server.store._do(what, *given[:1], *map(_bytes, given[1:]))
            self.wfile.write(_line(_text(result) if isinstance(result, bytes) else result))


def _line(said: object) -> bytes:
    return json.dumps(said).encode() + b"\n"


def _plain(content: bytes) -> dict[str, str]:
    found: dict[str, str] = json.loads(content or b"{}")
    return found


def _bytes(value: str | bytes) -> bytes:
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else bytes(value)


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
