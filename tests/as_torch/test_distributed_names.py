"""Names of `torch.distributed` that need no other rank, beside PyTorch's."""

import pytest
import torch.distributed as theirs

from genesis.as_torch.finder import look_up


class Ours:
    def __getattr__(self, name):
        return look_up("torch.distributed", name)


BOTH = Ours(), theirs


def same(function):
    found = []
    for lib in BOTH:
        try:
            found.append(function(lib))
        except Exception as problem:
            found.append([kind.__name__ for kind in type(problem).__mro__ if kind in (ValueError, RuntimeError, TypeError)])
    assert found[0] == found[1]


@pytest.mark.parametrize("backend", ["gloo", "NCCL", "mpi", "cpu:gloo,cuda:nccl", "cpu:gloo,", "cpu:gloo:x"])
def test_backends_of_devices(backend):
    same(lambda lib: (repr(lib.BackendConfig(lib.Backend(backend))), lib.BackendConfig(backend).get_device_backend_map()))


@pytest.mark.parametrize("ask", [
    lambda lib: lib.get_default_backend_for_device("cpu"), lambda lib: lib.get_default_backend_for_device("cuda:1"),
    lambda lib: lib.get_default_backend_for_device("meta"), lambda lib: lib.get_pg_count(),
    lambda lib: [lib.supports_complex(getattr(lib.ReduceOp, name)) for name in ("SUM", "AVG", "MAX", "PRODUCT", "BXOR")],
    lambda lib: lib.get_debug_level().name, lambda lib: lib.DebugLevel.DETAIL.name, lambda lib: lib.GroupName("name"),
])
def test_they_say_what_pytorchs_say(ask):
    same(ask)


def test_levels_of_the_environment(monkeypatch):
    for lib in BOTH:
        for said in ("INFO", "detail", "OFF"):
            monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", said)
            lib.set_debug_level_from_env()
            assert lib.get_debug_level().name == said.upper()
        monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "loud")
        with pytest.raises(ValueError, match="must be OFF, INFO, or DETAIL"):
            lib.set_debug_level_from_env()


def test_an_older_name_of_reductions_warns():
    for lib in BOTH:
        with pytest.warns(FutureWarning, match="ReduceOp"):
            assert lib.reduce_op.SUM == lib.ReduceOp.SUM
        with pytest.raises(AttributeError):
            lib.reduce_op.AVERAGE  # noqa: B018


@pytest.mark.parametrize("scheme", ["file", "tcp", "env", "own"])
def test_ranks_meet_by_a_url(scheme, tmp_path, monkeypatch):
    for lib in BOTH:
        url, given = {"file": (f"file://{tmp_path}/{type(lib).__name__}", (0, 1)),
                      "tcp": ("tcp://127.0.0.1:0?rank=0&world_size=1", ()), "env": ("env://", ()),
                      "own": ("own://place", (0, 1))}[scheme]
        if scheme == "env":
            for name, value in (("RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "0")):
                monkeypatch.setenv(name, value)
        if scheme == "own":
            def handler(url, lib=lib, **kwargs):
                assert url == "own://place?rank=0&world_size=1"
                yield lib.HashStore(), 0, 1

            lib.register_rendezvous_handler("own", handler)
            with pytest.raises(RuntimeError, match="already registered"):
                lib.register_rendezvous_handler("own", handler)
        meeting = lib.rendezvous(url, *given)
        store, rank, size = next(meeting)
        store.set("key", "value")
        assert (store.get("key"), rank, size) == (b"value", 0, 1)
    with pytest.raises(RuntimeError, match="No rendezvous handler"):
        BOTH[0].rendezvous("nowhere://")
