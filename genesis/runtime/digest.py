"""Digests of 32 bytes, which name what is kept on disk.

By Python's own BLAKE2: `hashlib` would load OpenSSL first, which takes as long as twenty modules.
"""

from __future__ import annotations

from functools import partial

try:
    from _blake2 import blake2b
except ImportError:  # an interpreter built without it
    from hashlib import blake2b

digest = partial(blake2b, digest_size=32)
