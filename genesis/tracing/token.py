"""Tokens: what each argument of a call contributes to the key of its step, and what such a key says of the arguments.

A key is an operation, the mode it was called in, a token for each argument, and last, where arguments were named, a tuple of
pairs (name, token). A token is

- the position of a tensor in the trace, or of a number that is an argument of the program: an int;
- a number that is part of the program, with its type, which tells 1, 1.0 and True apart; one that is equal to another, as
  -0.0 to 0.0, or to nothing, as NaN, as the text that reads it back;
- "tensors" and the tokens of the members, for a list with tensors;
- the members of another list, as a tuple: numbers as above, but ints alone among words as they are;
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
    """The token of a number that is part of the program."""
    found = number > 0 or number < 0 or (number == 0 and math.copysign(1.0, number) > 0)
    return float, number if found else repr(number)


def of_complex(number: complex) -> Token:
    """As `of_float`: 2+0j is equal to 2."""
    return complex, repr(number)


def arguments_in(key: Key) -> tuple[Sequence[Any], dict[str, Any]]:
    """The tokens of the arguments of a call, those by order and those by name."""
    tokens, named = key[2:], key[-1]
    if type(named) is tuple and named and all([type(p) is tuple and len(p) == 2 and type(p[0]) is str for p in named]):
        return tokens[:-1], dict(named)
    return tokens, {}


def members_in(token: Token) -> list[Token]:
    """The tokens of the members of a list with tensors, or the one of another argument."""
    if type(token) is tuple and token and token[0] == "tensors":
        return [inner for member in token[1:] for inner in members_in(member)]
    return [token]


def is_number(token: Token) -> bool:
    """Whether it is that of a number which is part of the program."""
    return type(token) is tuple and len(token) == 2 and type(token[0]) is type and token[0] in _NUMBERS


def argument_of(token: Any, tensor_at: Callable[[int], Any]) -> Any:
    """The argument that a token stands for, where `tensor_at` gives what is at a position."""
    if type(token) is int:
        return tensor_at(token)
    if type(token) is not tuple:
        return token
    if is_number(token):
        return token[0](token[1])
    if token and token[0] == "tensors":
        return [argument_of(member, tensor_at) for member in token[1:]]
    return tuple([argument_of(member, tensor_at) if type(member) is tuple else member for member in token])
