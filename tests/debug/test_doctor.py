"""The doctor: what is missing or broken is a line with a remedy, never an error, and a CPU's process loads nothing of CUDA."""

import subprocess
import sys
from pathlib import Path

import pytest

import genesis
from genesis.debug import doctor as doctor_module
from genesis.debug.cuda_probe import LIBRARIES, PACKAGES, parts
from genesis.runtime.installation import install_command

GPU = {"cuda": [12, 8], "gpus": [["A100", [8, 0], 80 << 30]]}
NO_DRIVER = {"driver": ("missing", None)}


def report_of(monkeypatch, found):
    """The report where the parts of CUDA are as `found` says, and all that it does not name is missing."""
    state = {name: found.get(name, ("missing", None)) for name in ("driver", *PACKAGES, *LIBRARIES)}
    monkeypatch.setattr(doctor_module, "_probed", lambda: dict(state))
    return genesis.doctor()


def test_it_prints_what_it_returns(capsys):
    report = genesis.doctor()
    assert capsys.readouterr().out == f"{report}\n"
    assert report["genesis"] == genesis.__version__ and f"{genesis.get_num_threads()} for " in report["threads"]


def test_the_command_prints_the_report():
    run = subprocess.run([sys.executable, "-m", "genesis", "doctor"], capture_output=True, text=True, check=False)
    assert run.returncode == 0 and not run.stderr
    assert [line for line in run.stdout.splitlines() if not line.startswith(" ")][:3] == ["software", "processor", "CUDA"]


def test_where_there_is_no_driver_nothing_of_cuda_is_missed(monkeypatch):
    report = report_of(monkeypatch, NO_DRIVER)
    assert report["driver"].startswith("none") and report["nvrtc"] == "not installed" and report.mends == []


@pytest.mark.parametrize(("version", "extra"), [([12, 8], "cuda12"), ([13, 0], "cuda13")])
def test_with_a_driver_one_command_installs_what_fits_it(monkeypatch, version, extra):
    report = report_of(monkeypatch, {"driver": ("found", GPU | {"cuda": version})})
    assert report.mends == [install_command(extra)]
    assert report["cuda:0"] == "A100, 80.0 GiB, compute capability 8.0"


OLD_GPU = {"cuda": [13, 0], "gpus": [["V100", [7, 0], 16 << 30]]}


@pytest.mark.parametrize(("driver", "mends"), [(GPU, 1), (OLD_GPU, 1), (GPU | {"cuda": [13, 1]}, 0)])
def test_parts_that_are_too_new_for_the_driver_or_the_gpu_are_told(monkeypatch, driver, mends):
    here = dict.fromkeys([*PACKAGES, *LIBRARIES], ("found", "0.30.4"))
    newest = dict.fromkeys(doctor_module.NUMBERED, ("found", "13.0.88"))
    report = report_of(monkeypatch, {"driver": ("found", driver)} | here | newest)
    assert report.mends == [install_command("cuda12")] * mends and report["numba-cuda"] == "0.30.4"
    assert all(report[part].endswith("takes") == bool(mends) for part in newest)
    report = report_of(monkeypatch, {"driver": ("found", driver)} | here | dict.fromkeys(newest, ("found", "12.9.86")))
    assert report.mends == []


def test_a_part_that_raises_is_a_line_with_the_reason(monkeypatch):
    report = report_of(monkeypatch, NO_DRIVER | {"numba-cuda": ("broken", "ImportError: half of it")})
    assert report["numba-cuda"] == "broken: ImportError: half of it" and report.mends == [install_command("cuda13")]


@pytest.mark.parametrize(("state", "said", "mends"), [
    (("missing", None), "not installed: GPUs of several processes do not communicate", []),
    (("broken", "OSError: no such symbol"), "broken: OSError: no such symbol", [install_command("nccl")]),
    (("found", "2.32.3"), "2.32.3", []),
])
def test_nccl_is_told_and_missed_by_nobody(monkeypatch, state, said, mends):
    here = dict.fromkeys([*PACKAGES, *LIBRARIES], ("found", "0.30.4"))
    state = {"driver": ("found", GPU | {"cuda": [13, 1]})} | here | {"nccl": state}
    monkeypatch.setattr(doctor_module, "_probed", lambda: dict(state))
    report = genesis.doctor()
    assert report["nccl"] == said and report.mends == mends


def fake_package(folder: Path, code: str) -> None:
    """An nvmath-python whose import runs `code`, where the probe finds it first."""
    (folder / "nvmath").mkdir()
    (folder / "nvmath" / "__init__.py").write_text(code)
    (folder / "nvmath_python-9.dist-info").mkdir()
    (folder / "nvmath_python-9.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: nvmath-python\nVersion: 9\n")


@pytest.mark.parametrize(("code", "said"), [
    ("raise ImportError('no such symbol')", "broken: ImportError: no such symbol"),
    ("print('cuda: noise')\nraise SystemExit(3)", "broken: SystemExit: 3"),
    ("import os\nos.abort()", "broken: it ends the process"),
])
def test_a_broken_package_ends_neither_the_doctor_nor_the_search(tmp_path, monkeypatch, code, said):
    fake_package(tmp_path, code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    report = genesis.doctor()
    assert report["nvmath-python"].startswith(said)
    assert all(report[name] for name, _ in parts())


def test_no_cache_is_said_and_mended(monkeypatch):
    monkeypatch.setattr(doctor_module, "cache_directory", lambda name: None)
    report = report_of(monkeypatch, NO_DRIVER)
    assert report["kernel cache"].startswith("none") and "GENESIS_CACHE_DIR" in report.mends[0]


def test_importing_genesis_and_computing_load_nothing_of_cuda():
    script = "import sys, genesis\ngenesis.ones(3).sum().item()\n" \
        "print([m for m in sys.modules if m.split('.')[0] in ('cuda', 'nvmath', 'numba_cuda') or m.startswith('numba.cuda')])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip() == "[]"
