"""Files of exported programs: another process runs them without the function, equal to the bit, compiling nothing."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import genesis
from genesis.runtime import loaded_source
from genesis.serialization import safetensors
from tests.shipping import programs

_READER = """
import sys, json, numpy as np, genesis
program = genesis.load_program(sys.argv[1])
values = [program(genesis.from_numpy(np.load(file))).numpy() for file in sys.argv[2:4]]
np.savez(sys.argv[4], *values)
made = genesis.debug.stats()
print(json.dumps([made["kernels_compiled"], made["kernels_loaded"], "numba" in sys.modules]))
"""


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """A folder with the program of a module, two arguments, of sizes unlike the example's too, and what the module gives."""
    folder = tmp_path_factory.mktemp("shipped")
    module = programs.mlp()
    program = genesis.export(module, genesis.randn(4, 5), dynamic=[{0: "batch"}])
    program.save(folder / "program")
    for name, x in (("a", genesis.randn(4, 5)), ("b", genesis.randn(9, 5))):
        np.save(folder / f"{name}.npy", x.numpy())
        np.save(folder / f"{name}_wanted.npy", module(x).detach().numpy())
    return folder


def read_elsewhere(folder, **environment):
    """What another process, with an empty cache, makes of the file: its results, and what it compiled."""
    cache = folder / f"cache{len([*folder.iterdir()])}"
    ran = subprocess.run(
        [sys.executable, "-c", _READER, *[str(folder / name) for name in ("program", "a.npy", "b.npy", "results.npz")]],
        capture_output=True, text=True, timeout=120, cwd=folder,
        env=os.environ | {"GENESIS_CACHE_DIR": str(cache), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))} | environment)
    assert ran.returncode == 0, ran.stderr
    results = np.load(folder / "results.npz")
    return [results[name] for name in results.files], json.loads(ran.stdout)


def test_another_process_compiles_nothing_and_gives_the_same_bits(shipped):
    results, (compiled, loaded, has_numba) = read_elsewhere(shipped)
    assert compiled == 0 and loaded > 0 and not has_numba
    for name, result in zip("ab", results, strict=True):
        assert np.array_equal(result, np.load(shipped / f"{name}_wanted.npy"))


def test_on_another_processor_it_is_compiled_anew(shipped):
    results, (compiled, _, _) = read_elsewhere(shipped, GENESIS_TARGET="x86-64-v3")
    assert compiled > 0
    for name, result in zip("ab", results, strict=True):
        np.testing.assert_allclose(result, np.load(shipped / f"{name}_wanted.npy"), rtol=1e-5, atol=1e-6)


def test_a_file_read_here_holds_graph_state_and_sizes(shipped):
    program = genesis.load_program(shipped / "program", machine_code=False)
    assert str(program) == str(genesis.load_program(shipped / "program"))
    assert {*program.state_dict} == {"0.weight", "0.bias", "2.weight", "2.bias"}
    assert program.sizes.dims[0].__name__ == "batch"


def test_a_file_that_is_written_after_genesis_was_edited_holds_no_machine_code(shipped, tmp_path, monkeypatch):
    monkeypatch.setattr(loaded_source, "_BEGAN", 0)
    genesis.load_program(shipped / "program").save(tmp_path / "program")
    x = genesis.from_numpy(np.load(shipped / "a.npy"))
    assert np.array_equal(genesis.load_program(tmp_path / "program")(x).numpy(), np.load(shipped / "a_wanted.npy"))
    with safetensors.safe_open(tmp_path / "program") as opened:
        assert {*opened.keys()} == {f"state.{name}" for name in genesis.load_program(shipped / "program").state_dict}


def test_a_damaged_file_is_refused(shipped, tmp_path):
    content = bytearray((shipped / "program").read_bytes())
    for name, broken in [
        ("empty", b""), ("short", content[:1000]), ("text", b"hello" * 100),
        ("code", content[:-20000] + bytes(x ^ 1 for x in content[-20000:])),
        ("graph", bytes(content).replace(b'\\"names\\"', b'\\"nomes\\"')),
    ]:
        (tmp_path / name).write_bytes(broken)
        with pytest.raises(ValueError, match="load_program"):
            genesis.load_program(tmp_path / name)


def test_dtypes_and_written_buffers_survive(tmp_path):
    module = genesis.nn.BatchNorm1d(3)
    x = genesis.randn(4, 3)
    genesis.export(module, x).save(tmp_path / "norm")
    program = genesis.load_program(tmp_path / "norm")
    assert np.array_equal(program(x).numpy(), module(x).detach().numpy())
    assert np.array_equal(program.state_dict["running_var"].numpy(), module.running_var.numpy())

    def mixed(x, i):
        return x.bfloat16() * 2, i.long().sum(), (x > 0) & (i == 1)

    arguments = x, genesis.tensor([[0], [1], [2], [3]], dtype=genesis.int8)
    genesis.export(mixed, *arguments).save(tmp_path / "mixed")
    for one, two in zip(genesis.load_program(tmp_path / "mixed")(*arguments), mixed(*arguments), strict=True):
        assert one.dtype is two.dtype and one.tolist() == two.tolist()
