"""Ranks without an MPI launcher, which meet at an address as PyTorch's do: those of `spawn` or `torchrun`.

Rank 0 listens at the address, and starts a server there (`process_manager`). When all ranks have arrived, each starts MPICH,
which gets the other ranks' addresses over the same connection, as from its own launcher. Open MPI requires its own launcher.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from genesis.distributed import mpi, process_manager
from genesis.distributed.launchers import check_meets
from genesis.distributed.neighbours import machine
from genesis.distributed.process_group import TIMEOUT
from genesis.distributed.stores import FileStore, Store, TCPStore, reached
from genesis.ir.errors import ArgumentError

HANDLERS: dict[str, Callable[..., Iterator[tuple[Store, int, int]]]] = {}  # of users' schemes
_KEY = "genesis/master"
_met: list[Rendezvous] = []  # this process's, once MPI has started by it
_managers: list[subprocess.Popen[bytes]] = []  # what answers, if this is rank 0


class Rendezvous(NamedTuple):
    """The address where ranks meet, their number, and this rank."""

    rank: int
    size: int
    address: str
    port: int
    store: Store | None = None  # by which rank 0 tells the others the two above, which it chooses

    def __str__(self) -> str:
        return f"{self.address}:{self.port}" if self.store is None else f"the address in a {type(self.store).__name__}"


def rendezvous_of(
    init_method: str | None, store: Store | None, world_size: int, rank: int, environment: Mapping[str, str]
) -> Rendezvous | None:
    """The rendezvous given by arguments of `init_process_group` or, where missing, by the environment; None for a single rank.

    Of a store, or "file://PATH", ranks learn it from rank 0, whose port is one that is free. Raises ValueError if a part is
    missing or out of range, and for another kind of `init_method`.
    """
    url = urlsplit(init_method or "env://")
    if url.scheme in HANDLERS:
        store, rank, world_size = next(HANDLERS[url.scheme](with_ranks(url, rank, world_size)))
    elif url.scheme not in ("env", "tcp", "file"):
        raise ArgumentError(f"init_process_group: init_method {init_method!r}; want 'env://', 'tcp://HOST:PORT' or 'file://PATH'")
    if url.scheme == "file":
        store = FileStore(url.path)
    said = _said(url, rank, world_size, environment)
    if said["WORLD_SIZE"] in ("", "1") and said["RANK"] in ("", "0"):
        return None
    own, size = _ranks(said)
    return Rendezvous(own, size, *(_address(said, 1) if store is None else ("", 0)), store)


def _said(url: SplitResult, rank: int, world_size: int, environment: Mapping[str, str]) -> dict[str, str]:
    """What arguments that are not -1, otherwise a URL, otherwise the environment says, by the names of its variables."""
    query = dict(parse_qsl(url.query))
    given = {
        "WORLD_SIZE": str(world_size) if world_size != -1 else query.get("world_size", ""),
        "RANK": str(rank) if rank != -1 else query.get("rank", ""),
        "MASTER_ADDR": url.hostname or "", "MASTER_PORT": "" if url.port is None else str(url.port),
    }
    return {name: given[name] or environment.get(name, "") for name in given}


def _ranks(said: Mapping[str, str]) -> tuple[int, int]:
    """The rank, and the number of ranks."""
    size, own = (_number(name, said[name], least, 1 << 20) for name, least in (("WORLD_SIZE", 1), ("RANK", 0)))
    if own >= size:
        raise ArgumentError(f"rendezvous: rank {own} of {size}; want 0 to {size - 1}")
    return own, size


def _address(said: Mapping[str, str], least_port: int) -> tuple[str, int]:
    port = _number("MASTER_PORT", said["MASTER_PORT"], least_port, 65535)
    if not said["MASTER_ADDR"]:
        raise ArgumentError(_wanted("MASTER_ADDR", ""))
    return said["MASTER_ADDR"], port


def with_ranks(url: SplitResult, rank: int, world_size: int) -> str:
    """A URL with the rank and the number of ranks in its query, unless they are -1. Raises ValueError if they are there."""
    given = {name: str(value) for name, value in (("rank", rank), ("world_size", world_size)) if value != -1}
    known = dict(parse_qsl(url.query))
    if given and not {"rank", "world_size"}.isdisjoint(known):
        raise ArgumentError(f"rendezvous: {url.geturl()} has a rank or world_size that arguments have too; want one of them")
    return url._replace(query=urlencode(known | given)).geturl()


def meet(where: Rendezvous, seconds: float) -> None:
    """Wait for all ranks, at most `seconds`, and start MPI with them.

    Raises RuntimeError if they do not arrive, disagree, or MPI cannot start this way.
    """
    if _met:
        if _met[0][:2] != where[:2]:
            before = f"rank {_met[0].rank} of {_met[0].size}"
            raise RuntimeError(f"init_process_group: this process was {before} before; MPI starts once in a process")
        return
    check_meets()
    end = time.monotonic() + seconds
    with _reached(where, end) if where.rank else answered(where) as connection:
        hello = f"cmd=hello rank={where.rank} size={where.size} machine={''.join(machine().split()) or socket.gethostname()}\n"
        connection.sendall(hello.encode())
        said = _line(connection, where, end)
        if said != "welcome":
            raise RuntimeError(f"init_process_group: {said or 'rank 0 has gone'}, at {where}")
        if where.store is not None and where.rank == 0:
            where.store.delete_key(_KEY)  # all have read it: who comes by this store later waits for another one
        connection.settimeout(None)
        names = {"PMI_FD": connection.fileno(), "PMI_RANK": where.rank, "PMI_SIZE": where.size}
        os.environ.update({name: str(number) for name, number in names.items()})
        try:
            mpi.library()
        finally:
            for name in names:  # of the processes that this one starts none is a rank
                del os.environ[name]
        connection.detach()  # it is MPI's
    _met.append(where)


def answered(where: Rendezvous) -> socket.socket:
    """Rank 0's connection to a server at the address, which runs until all ranks have gone."""
    if where.store is not None:
        where = where._replace(address=socket.gethostname(), port=0)
    try:
        family, *_, address = socket.getaddrinfo(where.address, where.port, type=socket.SOCK_STREAM)[0]
        is_near = where.store is None and ipaddress.ip_address(address[0]).is_loopback
        listener = socket.create_server((address[0] if is_near else "", where.port), family=family, backlog=where.size)
    except OSError as problem:
        raise RuntimeError(f"init_process_group: rank 0 cannot listen at {where.address}:{where.port}: {problem}") from problem
    if where.store is not None:
        where.store.set(_KEY, f"{where.address} {listener.getsockname()[1]}")
    own, other = socket.socketpair()
    with listener, other:
        files = listener.fileno(), other.fileno()
        command = [sys.executable, "-I", "-S", process_manager.__file__, *map(str, files), str(where.size)]
        _managers.append(subprocess.Popen(command, pass_fds=files, stdin=subprocess.DEVNULL, start_new_session=True))
    return own


def _reached(where: Rendezvous, end: float) -> socket.socket:
    """A connection to rank 0, which may start later."""
    if where.store is not None:
        where.store.wait([_KEY], datetime.timedelta(seconds=end - time.monotonic()))
        address, port = where.store.get(_KEY).decode().split()
        where = where._replace(address=address, port=int(port))
    found = reached(where.address, where.port, end)
    if found is None:
        raise RuntimeError(f"init_process_group: rank {where.rank} waited for rank 0, and nobody is at "
                           f"{where.address}:{where.port}")
    return found


def _line(connection: socket.socket, where: Rendezvous, end: float) -> str:
    """A line of the answer; no further byte is read, because it is MPI's."""
    found = b""
    while not found.endswith(b"\n"):
        connection.settimeout(max(end - time.monotonic(), 0.001))
        try:
            byte = connection.recv(1)
        except TimeoutError:
            raise RuntimeError(
                f"init_process_group: rank {where.rank} waited at {where}, and not all {where.size} ranks "
                "came") from None
        if not byte:
            break
        found += byte
    return found.decode().strip()


def _number(name: str, said: str, least: int, most: int) -> int:
    if not said.isdecimal() or not least <= int(said) <= most:
        raise ArgumentError(_wanted(name, said))
    return int(said)


def _wanted(name: str, said: str) -> str:
    """The error message for a missing or wrong part."""
    is_there = f"{name} is {said!r}" if said else f"{name} is missing"
    return (
        f"rendezvous: {is_there}; want WORLD_SIZE, RANK, MASTER_ADDR and MASTER_PORT in the environment, or arguments "
        "(init_method='tcp://HOST:PORT', world_size=, rank=), or mpiexec -n RANKS python -m genesis.distributed SCRIPT")


# ---- by the scheme of a URL, which may be a user's own ----
Meeting = tuple[Store, int, int]
Handler = Callable[..., Iterator[Meeting]]


def register_rendezvous_handler(scheme: str, handler: Handler) -> None:
    """Register a generator function for URLs "scheme://..": it yields a store, the rank and the number of ranks.

    `init_process_group(init_method=)` takes such URLs too. Raises RuntimeError for a scheme that has a handler.
    """
    if scheme in _HANDLERS or scheme in HANDLERS:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    HANDLERS[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Iterator[Meeting]:
    """An iterator of one (store, rank, number of ranks), by "file://PATH", "tcp://HOST:PORT", "env://" or a handler's URL.

    >>> store, rank, size = next(genesis.distributed.rendezvous.rendezvous("tcp://127.0.0.1:0", 0, 1))
    >>> store.set("key", "value")
    >>> store.get("key"), rank, size
    (b'value', 0, 1)
    """
    parsed = urlsplit(url)
    handler = _HANDLERS.get(parsed.scheme, HANDLERS.get(parsed.scheme))
    if handler is None:
        raise RuntimeError(f"No rendezvous handler for {parsed.scheme}://")
    return handler(with_ranks(parsed, rank, world_size), **kwargs)


def _meeting(url: str, timeout: datetime.timedelta = TIMEOUT, **kwargs: Any) -> Iterator[Meeting]:
    parsed = urlsplit(url)
    said = _said(parsed, -1, -1, os.environ if parsed.scheme == "env" else {})
    rank, size = _ranks(said)
    is_file = parsed.scheme == "file"
    yield FileStore(parsed.path, size) if is_file else TCPStore(*_address(said, 0), size, rank == 0, timeout), rank, size
    raise RuntimeError(f"Unable to perform rerendezvous using {parsed.scheme}:// method")


_HANDLERS: dict[str, Handler] = dict.fromkeys(("file", "tcp", "env"), _meeting)
