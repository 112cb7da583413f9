"""The private OpenBLAS."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from genesis.runtime import blas as module
from genesis.runtime.blas import blas, core_type

from .kernels import run_python
from .test_gemm import multiply


def test_the_library_says_what_it_is():
    library = blas()
    assert library.cblas_sgemm and library.cblas_dgemm
    assert "OpenBLAS" in library.config and "USE64BITINT" in library.config
    assert library.core


def test_loading_leaves_no_threads_and_the_environment_alone():
    code = """
        import os, time
        from genesis.runtime.blas import blas
        before = dict(os.environ), len(os.listdir("/proc/self/task"))
        blas()
        time.sleep(0.1)
        assert (dict(os.environ), len(os.listdir("/proc/self/task"))) == before
    """
    pytest.importorskip("resource")
    run_python(code, OPENBLAS_CORETYPE="Haswell")


def test_numpy_keeps_its_own_copy():
    code = """
        from threadpoolctl import threadpool_info
        from genesis.runtime.blas import blas
        before = threadpool_info()
        blas()
        after = {library["filepath"]: library for library in threadpool_info()}
        assert all(after[library["filepath"]] == library for library in before) and len(after) == len(before) + 1
    """
    pytest.importorskip("threadpoolctl")
    run_python(code)


def test_threads_multiply_at_once():
    random = np.random.default_rng(1)
    a, b = random.standard_normal((64, 64)), random.standard_normal((64, 64))
    outputs = [np.empty((64, 64)) for _ in range(4)]
    threads = [threading.Thread(target=multiply, args=(a, b, c), kwargs={"panels": 4}) for c in outputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for c in outputs:
        np.testing.assert_allclose(c, a @ b, rtol=1e-12, atol=1e-12)


def test_the_kernel_set_is_chosen_by_rule_until_measured(tmp_path, monkeypatch):
    monkeypatch.setenv("GENESIS_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    monkeypatch.setattr(module.llvm, "get_host_cpu_features", lambda: module.llvm.FeatureMap(avx512f=True))
    assert core_type() == ""
    every = dict.fromkeys(("avx512f", "avx512bw", "avx512dq", "avx512vl"), True)
    monkeypatch.setattr(module.llvm, "get_host_cpu_features", lambda: module.llvm.FeatureMap(every))
    assert core_type() == "SkylakeX"
    module._choice_path().write_text("Zen")
    assert core_type() == "Zen"
    module._choice_path().write_text("nonsense")
    assert core_type() == "SkylakeX"
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    assert core_type() == "Haswell"


def test_measuring_remembers_the_best(tmp_path, monkeypatch):
    monkeypatch.setenv("GENESIS_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    monkeypatch.setattr(module, "CORE_TYPES", ("", "Haswell"))
    speeds = module.measure()
    assert set(speeds) == {"", "Haswell"} and all(speed > 0 for speed in speeds.values())
    assert core_type() == max(speeds, key=speeds.get)
