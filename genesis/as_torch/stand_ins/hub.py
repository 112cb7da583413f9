"""`torch.hub`: files with weights, fetched once and kept; models of the `hubconf.py` of a folder or a GitHub repository."""

from __future__ import annotations

import builtins
import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import urllib.parse
import urllib.request
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from genesis.ir.annotations import AnyFunction
from genesis.serialization import load as load_file
from genesis.serialization.names import Read
from genesis.serialization.storage import MapLocation

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # in a file's name, the beginning of its SHA-256
urlparse = urllib.parse.urlparse  # libraries import both from here
MODULE_HUBCONF = "hubconf.py"
VAR_DEPENDENCY = "dependencies"
Trust = bool | str | None
_directory: builtins.list[str] = []


def get_dir() -> str:
    """The directory of downloaded files: as set, or `hub` below $TORCH_HOME, or below torch in the user's cache."""
    return _directory[0] if _directory else os.path.join(_get_torch_home(), "hub")


def _get_torch_home() -> str:
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", f"{cache}/torch"))


def set_dir(d: str | os.PathLike[str]) -> None:
    """Set the directory of downloaded files."""
    _directory[:] = [os.path.expanduser(d)]


def download_url_to_file(url: str, dst: str | os.PathLike[str], hash_prefix: str | None = None, progress: bool = True) -> None:
    """Fetch a file. Raises RuntimeError where its SHA-256 does not begin with `hash_prefix`."""
    digest = hashlib.sha256()
    with urllib.request.urlopen(url) as source, tempfile.NamedTemporaryFile(dir=Path(dst).parent, delete=False) as part:
        try:
            while chunk := source.read(1 << 20):
                digest.update(chunk)
                part.write(chunk)
            part.close()
            if hash_prefix and not digest.hexdigest().startswith(hash_prefix):
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')
            shutil.move(part.name, dst)
        finally:
            Path(part.name).unlink(missing_ok=True)


def load_state_dict_from_url(
    url: str, model_dir: str | None = None, map_location: MapLocation = None, progress: bool = True, check_hash: bool = False,
    file_name: str | None = None, weights_only: bool = True,
) -> Read:
    """Load the file at `url`, downloaded unless it was before; `check_hash` compares the hash in its name."""
    directory = Path(model_dir or Path(get_dir()) / "checkpoints")
    directory.mkdir(parents=True, exist_ok=True)
    name = file_name or os.path.basename(urllib.parse.urlparse(url).path)
    path, found = directory / name, HASH_REGEX.search(name)
    if not path.exists():
        sys.stdout.write(f'Downloading: "{url}" to {path}\n')
        download_url_to_file(url, path, found[1] if check_hash and found else None, progress)
    return load_file(path, map_location, weights_only=weights_only)


load_url = load_state_dict_from_url


# ---- repositories ----
def load(
    repo_or_dir: str | os.PathLike[str], model: str, *args: Any, source: str = "github", trust_repo: Trust = None,
    force_reload: bool = False, verbose: bool = True, skip_validation: bool = False, **kwargs: Any,
) -> Any:
    """The result of the function `model` in a repository's `hubconf.py`: "owner/name[:reference]", or with "local" a folder.

    Raises ValueError for another source, RuntimeError where there is no such function or a module it depends on is missing.
    """
    if source.lower() not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    folder = Path(repo_or_dir) if source.lower() == "local" else _fetched(str(repo_or_dir), force_reload, trust_repo, verbose)
    with _opened(folder) as module:
        return _entry(module, model)(*args, **kwargs)


def list(
    github: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: Trust = None, verbose: bool = True
) -> builtins.list[str]:
    """The names of a repository's functions."""
    with _opened(_fetched(github, force_reload, trust_repo, verbose)) as module:
        return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(
    github: str, model: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: Trust = None
) -> str | None:
    """The docstring of a repository's function."""
    with _opened(_fetched(github, force_reload, trust_repo, verbose=True)) as module:
        return _entry(module, model).__doc__


def _fetched(repository: str, force: bool, trust: Trust, verbose: bool) -> Path:
    """The folder of "owner/name[:reference]", downloaded at the first use."""
    parsed = re.fullmatch(r"([^/:]+)/([^/:]+)(?::(.+))?", repository)
    if parsed is None:
        raise ValueError(f"torch.hub: repository {repository!r}; want 'owner/name' or 'owner/name:reference'")
    owner, name, reference = parsed[1], parsed[2], parsed[3] or "HEAD"
    home = Path(get_dir())
    home.mkdir(parents=True, exist_ok=True)
    _ask_for_trust(f"{owner}_{name}", home / "trusted_list", trust)
    folder = home / "_".join((owner, name, reference.replace("/", "_")))
    if folder.exists() and not force:
        if verbose:
            sys.stderr.write(f"Using cache found in {folder}\n")
        return folder
    with tempfile.TemporaryDirectory(dir=home) as temporary:
        archive = Path(temporary) / "archive.zip"
        download_url_to_file(f"https://github.com/{owner}/{name}/zipball/{reference}", archive, progress=False)
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(temporary)
            top = packed.namelist()[0].partition("/")[0]
        shutil.rmtree(folder, ignore_errors=True)
        shutil.move(str(Path(temporary) / top), folder)
    return folder


def _ask_for_trust(owner_name: str, listed: Path, trust: Trust) -> None:
    """Before running foreign code: nothing, a warning, or a question that must be answered with y, as `trust_repo` says."""
    known = listed.read_text().splitlines() if listed.exists() else []
    if trust is None and owner_name not in known:
        warnings.warn(f"torch.hub: code of an untrusted repository, {owner_name}, is about to run; say trust_repo=True or "
                      "trust_repo='check'", stacklevel=4)
    elif trust is False or (trust == "check" and owner_name not in known):
        if input(f"The repository {owner_name} is not in the list of trusted repositories. Do you trust it (y/N)? ") != "y":
            raise RuntimeError("Untrusted repository.")
        trust = True
    if trust is True and owner_name not in known:
        listed.write_text("\n".join([*known, owner_name]) + "\n")


@contextmanager
def _opened(folder: Path) -> Iterator[ModuleType]:
    """A context with the module of a folder's `hubconf.py`, in which the folder's other modules can be imported."""
    sys.path.insert(0, str(folder))
    try:
        spec = importlib.util.spec_from_file_location(MODULE_HUBCONF, folder / MODULE_HUBCONF)
        if spec is None or spec.loader is None:
            raise RuntimeError(f"torch.hub: {folder} has no {MODULE_HUBCONF}")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(folder))


def _entry(module: ModuleType, model: str) -> AnyFunction:
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    missing = [name for name in getattr(module, VAR_DEPENDENCY, ()) if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    found = getattr(module, model, None)
    if found is None or not callable(found):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return found  # type: ignore[no-any-return]
