"""Repositories of `torch.hub` are fetched once, and run only when they are trusted."""

import builtins
import zipfile
from pathlib import Path

import pytest

from genesis.as_torch.stand_ins import hub


@pytest.fixture
def addresses(tmp_path, monkeypatch):
    """The addresses that are asked for: each is an archive of one model, the number of fetches so far."""
    asked = []

    def download(url, path, progress):
        asked.append(url)
        with zipfile.ZipFile(path, "w") as packed:
            packed.writestr("somebody-models-1a2b/hubconf.py", f"def fetched(by=0): return {len(asked)} + by")

    monkeypatch.setattr(hub, "download_url_to_file", download)
    monkeypatch.setattr(hub, "_directory", [str(tmp_path)])
    return asked


def test_a_repository_is_fetched_once_unless_it_is_forced(addresses, capsys):
    assert hub.load("somebody/models", "fetched", trust_repo=True) == 1
    assert hub.load("somebody/models", "fetched", 10, trust_repo=True, verbose=False) == 11
    assert hub.load("somebody/models", "fetched", by=5, trust_repo=True, force_reload=True) == 7
    assert hub.load("somebody/models:v2", "fetched", trust_repo=True) == 3
    assert [url.rpartition("/")[2] for url in addresses] == ["HEAD", "HEAD", "v2"]
    assert addresses[0] == "https://github.com/somebody/models/zipball/HEAD" and not capsys.readouterr().err


def test_code_of_others_is_run_when_somebody_says_so(addresses, monkeypatch):
    monkeypatch.setattr(builtins, "input", lambda question: "n")
    for trust in (False, "check"):
        with pytest.raises(RuntimeError, match="Untrusted"):
            hub.load("somebody/models", "fetched", trust_repo=trust)
    assert not addresses
    with pytest.warns(UserWarning, match="untrusted repository, somebody_models"):
        hub.load("somebody/models", "fetched")
    monkeypatch.setattr(builtins, "input", lambda question: "y")
    assert hub.load("somebody/models", "fetched", trust_repo="check", verbose=False) == 1
    assert Path(hub.get_dir(), "trusted_list").read_text() == "somebody_models\n"
    monkeypatch.setattr(builtins, "input", lambda question: pytest.fail("asked again"))
    assert hub.load("somebody/models", "fetched", trust_repo="check", verbose=False) == 1


def test_what_is_no_repository_is_refused(addresses):
    with pytest.raises(ValueError, match="want 'owner/name'"):
        hub.list("models", trust_repo=True)
