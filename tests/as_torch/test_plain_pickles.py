"""Pickles of tensors that Python's own pickle wrote under PyTorch, as data sets and caches are."""

import pickle

import pytest

from tests.as_torch.test_door import run

torch = pytest.importorskip("torch")


def test_tensors_that_python_pickled_are_read_under_the_door(tmp_path):
    layer = torch.nn.Linear(2, 1)
    kept = {
        "strided": torch.arange(6.0).reshape(2, 3).t(), "truth": torch.tensor([True, False]), "parameter": torch.nn.Parameter(
            torch.ones(2)), "half": torch.ones(2, dtype=torch.bfloat16), "state": layer.state_dict()}
    (tmp_path / "plain.pkl").write_bytes(pickle.dumps(kept))
    printed = run(
        f"""
        import pickle, torch
        kept = pickle.load(open({str(tmp_path / "plain.pkl")!r}, "rb"))
        parameter = kept["parameter"]
        print(kept["strided"].tolist(), kept["truth"].tolist(), type(parameter).__name__, parameter.requires_grad)
        layer = torch.nn.Linear(2, 1)
        layer.load_state_dict(kept["state"])
        print(layer(torch.ones(1, 2)).item(), kept["half"].dtype)
        """, tmp_path=tmp_path).splitlines()
    assert printed[0] == f"{kept['strided'].tolist()} [True, False] Parameter True"
    number, dtype = printed[1].split()
    assert float(number) == pytest.approx(layer(torch.ones(1, 2)).item(), rel=1e-5) and dtype == "torch.bfloat16"


def test_stand_ins_are_pickled_by_the_places_where_they_stand(tmp_path):
    printed = run(
        """
        import pickle, torch
        found = [torch.get_num_interop_threads, torch.serialization.set_crc32_options, torch.backends.cuda.flash_sdp_enabled,
                 torch.hann_window, torch.nn.modules.utils._pair, torch.compiler.get_default_backend]
        print(all(pickle.loads(pickle.dumps(function)) is function for function in found))
        print(*[function.__name__ for function in found])
        """, tmp_path=tmp_path).splitlines()
    assert printed == [
        "True", "get_num_interop_threads set_crc32_options flash_sdp_enabled hann_window _pair get_default_backend"]
