"""Digests of 32 bytes, which name what is kept on disk.

By Python's own BLAKE2: `hashlib` would load OpenSSL first, which takes as long as twenty modules.
"""

from __future__ import annotations

import marshal
from functools import partial
from typing import Any

try:
    from _blake2 import blake2b
except ImportError:  # an interpreter built without it
    from hashlib import blake2b

digest = partial(blake2b, digest_size=32)


def by_value(facts: tuple[Any, ...]) -> bytes:
    """Numbers, names and tuples of them as bytes that depend on their types and on equality alone. ValueError for others."""
    return marshal.dumps(facts, 2)  # the last version without references to objects met before
