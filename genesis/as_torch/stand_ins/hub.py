"""`torch.hub`: files with weights, fetched once and kept."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path

from genesis.serialization import load
from genesis.serialization.names import Read
from genesis.serialization.storage import MapLocation

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # in a file's name, the beginning of its SHA-256
urlparse = urllib.parse.urlparse  # libraries import both from here
_directory: list[str] = []


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
    return load(path, map_location, weights_only=weights_only)


load_url = load_state_dict_from_url
