"""Tokens: each argument's contribution to the key of a call in the trie, and the arguments back from a key.

A key is an operation, the mode it was called in, a token per argument and, if there are keyword arguments, a tuple of pairs
(name, token). A token is

- the position of a tensor in the trace, or of a number that is an argument of the program: an int;
- a number that is part of the program, with its type, which distinguishes 1, 1.0 and True; -0.0, which equals 0.0, and NaN,
  which equals nothing, as text;
- "tensors" and the tokens of the members, for a list with tensors;
- the members of another list, as a tuple: numbers as above, but unchanged if all members are ints, strings and None;
- anything else as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from genesis.tracing.trie import Key

Token = object
_NUMBERS = frozenset({bool, int, float, complex})


def of_float(number: float) -> Token:
    """The token of a constant number of the program."""
    found = number > 0 or number < 0 or (number == 0 and math.copysign(1.0, number) > 0)
    return float, number if found else repr(number)


def of_complex(number: complex) -> Token:
    """As `of_float`, because 2+0j equals 2."""
    return complex, repr(number)


def arguments_in(key: Key) -> tuple[Sequence[Any], dict[str, Any]]:
    """The tokens of a call's positional and keyword arguments."""
    tokens, named = key[2:], key[-1]
    if type(named) is tuple and named and all([type(p) is tuple and len(p) == 2 and type(p[0]) is str for p in named]):
        return tokens[:-1], dict(named)
    return tokens, {}


def members_in(token: Token) -> list[Token]:
    """The member tokens of a list with tensors; for another argument, its token."""
    if type(token) is tuple and token and token[0] == "tensors":
        return [inner for member in token[1:] for inner in members_in(member)]
    return [token]


def is_number(token: Token) -> bool:
    """Whether it is the token of a constant number of the program."""
    return type(token) is tuple and len(token) == 2 and type(token[0]) is type and token[0] in _NUMBERS


def argument_of(token: Any, tensor_at: Callable[[int], Any]) -> Any:
    """The argument of a token; `tensor_at` returns the object at a position."""
    if type(token) is int:
        return tensor_at(token)
    if type(token) is not tuple:
        return token
    if is_number(token):
        return token[0](token[1]) if token[1].__class__ is str else token[1]
    if token and token[0] == "tensors":
        return tuple([argument_of(member, tensor_at) for member in token[1:]])
    return tuple([argument_of(member, tensor_at) if type(member) is tuple else member for member in token])
