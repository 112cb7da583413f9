"""Stores of values by keys, beside PyTorch's."""

import gc
import itertools
import socket
import threading
from datetime import timedelta

import pytest
import torch

import genesis

MAKERS = {
    "hash": lambda lib, path: lib.HashStore(),
    "file": lambda lib, path: lib.FileStore(str(path / lib.__name__), 1),
    "tcp": lambda lib, path: lib.TCPStore("127.0.0.1", 0, 1, True),
    "prefix": lambda lib, path: lib.PrefixStore("part", lib.HashStore()),
}
CALLS = [
    ("set", "a", "x"), ("get", "a"), ("add", "n", 2), ("add", "n", -5), ("get", "n"), ("compare_set", "c", "", "v"),
    ("compare_set", "c", "v", "w"), ("compare_set", "c", "other", "q"), ("compare_set", "absent", "other", "q"),
    ("check", ["absent"]), ("check", ["a", "c"]), ("delete_key", "a"), ("check", ["a"]), ("append", "a", "1"),
    ("append", "a", "2"), ("get", "a"), ("multi_set", ["k", "l"], ["1", "2"]), ("multi_get", ["k", "l", "c"]),
    ("set", "b", b"\xff\x00\n{"), ("get", "b"), ("set", "d", "äö"), ("get", "d"),
]


@pytest.mark.parametrize("kind", MAKERS)
def test_a_store_does_what_pytorchs_does(kind, tmp_path):
    own, theirs = (MAKERS[kind](lib, tmp_path) for lib in (genesis.distributed, torch.distributed))
    for name, *given in CALLS:
        assert getattr(own, name)(*given) == getattr(theirs, name)(*given), (name, given)
    assert own.timeout == theirs.timeout


@pytest.mark.parametrize("kind", ["hash", "tcp"])
def test_a_queue_does_what_pytorchs_does(kind, tmp_path):
    for lib in (genesis.distributed, torch.distributed):
        store = MAKERS[kind](lib, tmp_path)
        for value in ("a", "b"):
            store.queue_push("queue", value)
        assert store.queue_len("queue") == 2 and [store.queue_pop("queue", False), store.queue_pop("queue")] == [b"a", b"b"]
        with pytest.raises(lib.QueueEmptyError):
            store.queue_pop("queue", False)
        assert issubclass(lib.QueueEmptyError, lib.DistStoreError) and issubclass(lib.DistStoreError, lib.DistError)


def test_values_of_a_queue_are_taken_once():
    store, found = genesis.distributed.HashStore(), []
    threads = [threading.Thread(target=lambda: found.extend(store.queue_pop("q") for _ in range(20))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(80):
        store.queue_push("q", str(number))
    for thread in threads:
        thread.join()
    assert sorted(map(int, found)) == [*range(80)]


@pytest.mark.parametrize("kind", MAKERS)
def test_a_key_that_does_not_come_is_named(kind, tmp_path):
    store = MAKERS[kind](genesis.distributed, tmp_path)
    with pytest.raises(genesis.distributed.DistStoreError, match="keys: never"):
        store.wait(["never"], timedelta(milliseconds=20))
    store.set_timeout(timedelta(milliseconds=20))
    with pytest.raises(RuntimeError, match="keys: never"):
        store.get("never")


@pytest.mark.parametrize("kind", ["hash", "file", "tcp"])
def test_what_several_add_is_added_once_each(kind, tmp_path):
    store = MAKERS[kind](genesis.distributed, tmp_path)
    others = {
        "hash": lambda: store, "file": lambda: genesis.distributed.FileStore(store.path),
        "tcp": lambda: genesis.distributed.TCPStore("127.0.0.1", store.port),
    }
    def count():
        own = others[kind]()
        for number in range(50):
            own.add("n", number)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert int(store.get("n")) == 4 * sum(range(50)) and store.num_keys() == 1 + (kind == "tcp")  # and how many have come


def test_processes_wait_for_each_other_at_a_store():
    with pytest.raises(genesis.distributed.DistStoreError, match="1 of 2 processes came"):
        genesis.distributed.TCPStore("127.0.0.1", 0, 2, True, timeout=timedelta(milliseconds=100))
    with pytest.raises(genesis.distributed.DistStoreError, match="nobody is at 127"):
        genesis.distributed.TCPStore("127.0.0.1", 1, timeout=timedelta(milliseconds=100))


def test_a_local_rank_is_what_the_launcher_says(monkeypatch):
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    for lib, fallback in itertools.product((genesis.distributed, torch.distributed), (None, 3)):
        if fallback is None:
            with pytest.raises(RuntimeError):
                lib.get_node_local_rank()
        else:
            assert lib.get_node_local_rank(fallback) == 3
    monkeypatch.setenv("LOCAL_RANK", "5")
    assert genesis.distributed.get_node_local_rank() == torch.distributed.get_node_local_rank() == 5


def test_a_port_is_free_again_when_the_masters_store_has_gone():
    for lib in (genesis.distributed, torch.distributed):
        with socket.socket() as listening:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            given = lib.TCPStore("127.0.0.1", listening.getsockname()[1], 1, True, master_listen_fd=listening.detach())
        port = given.port
        with pytest.raises(RuntimeError):
            lib.TCPStore("127.0.0.1", port, 1, True)
        del given
        gc.collect()
        again = lib.TCPStore("127.0.0.1", port, 1, True)
        assert (again.port, again.num_keys()) == (port, 1)
