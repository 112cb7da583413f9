"""Parts of messages: the command that installs what genesis lacks, by how it was installed itself, and numbers of bytes."""

from __future__ import annotations

from pathlib import Path

_TREE = Path(__file__).parents[2]


def install_command(extra: str = "") -> str:
    """The command that installs genesis from its clone, with an extra; a wheel does not know its clone, which is ".".

    >>> from genesis.runtime.installation import install_command
    >>> install_command("cuda13").endswith('[cuda13]"')
    True
    """
    # Never by a name alone: PyPI's `genesis` is another project's, and this one's distribution is not there.
    clone = _TREE if (_TREE / "pyproject.toml").exists() else "."
    return f'python -m pip install --editable "{clone}{f"[{extra}]" if extra else ""}"'


def readable(nbytes: int) -> str:
    """A number of bytes, in the unit that fits it.

    >>> readable(640), readable(3 << 20)
    ('640 B', '3.0 MiB')
    """
    size, unit = float(nbytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
