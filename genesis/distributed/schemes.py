"""Rendezvous by the scheme of a URL, which may be a user's own: a store, this process's rank and the number of ranks."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from genesis.distributed.process_group import TIMEOUT
from genesis.distributed.rendezvous import HANDLERS, with_ranks
from genesis.distributed.stores import FileStore, Store, TCPStore
from genesis.ir.errors import ArgumentError

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

    >>> store, rank, size = next(genesis.distributed.schemes.rendezvous("tcp://127.0.0.1:0", 0, 1))
    >>> store.set("key", "value")
    >>> store.get("key"), rank, size
    (b'value', 0, 1)
    """
    parsed = urlsplit(url)
    handler = _HANDLERS.get(parsed.scheme, HANDLERS.get(parsed.scheme))
    if handler is None:
        raise RuntimeError(f"No rendezvous handler for {parsed.scheme}://")
    return handler(with_ranks(parsed, rank, world_size), **kwargs)


def _file(url: str, **kwargs: Any) -> Iterator[Meeting]:
    rank, size = _ranks(url, {})
    yield FileStore(urlsplit(url).path, size), rank, size
    raise RuntimeError("Unable to perform rerendezvous using file:// method")


def _tcp(url: str, timeout: datetime.timedelta = TIMEOUT, **kwargs: Any) -> Iterator[Meeting]:
    parsed, (rank, size) = urlsplit(url), _ranks(url, {})
    if parsed.hostname is None or parsed.port is None:
        raise ArgumentError(f"rendezvous: {url}; want tcp://HOST:PORT")
    yield TCPStore(parsed.hostname, parsed.port, size, rank == 0, timeout), rank, size
    raise RuntimeError("Unable to perform rerendezvous using tcp:// method")


def _env(url: str, timeout: datetime.timedelta = TIMEOUT, **kwargs: Any) -> Iterator[Meeting]:
    rank, size = _ranks(url, {"rank": os.environ.get("RANK"), "world_size": os.environ.get("WORLD_SIZE")})
    try:
        address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    except KeyError as missing:
        raise ArgumentError(f"rendezvous: {missing.args[0]} is not in the environment") from None
    yield TCPStore(address, port, size, rank == 0, timeout), rank, size
    raise RuntimeError("Unable to perform rerendezvous using env:// method")


def _ranks(url: str, otherwise: dict[str, str | None]) -> tuple[int, int]:
    """The rank, and the number of ranks, by the URL's query."""
    known = otherwise | dict(parse_qsl(urlsplit(url).query))
    if known.get("rank") is None or known.get("world_size") is None:
        raise ArgumentError(f"rendezvous: rank or world_size is missing in {url}")
    return int(known["rank"] or 0), int(known["world_size"] or 0)


_HANDLERS: dict[str, Handler] = {"file": _file, "tcp": _tcp, "env": _env}
