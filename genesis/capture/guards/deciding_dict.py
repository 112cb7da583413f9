"""Conditions of a check that depend on one dict alone: they are skipped as long as its version is the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

_METHODS = {"get", "isdisjoint", "keys", "values"}
_FUNCTIONS = {"all", "any", "differs", "is_not", "len", "map", "same"}
_FORMS = (ast.BoolOp, ast.boolop, ast.Constant, ast.expr_context, ast.IsNot, ast.Name, ast.NamedExpr, ast.Not, ast.NotEq,
          ast.UnaryOp)


def dict_that_decides(condition: ast.expr, constants: Mapping[str, object]) -> str | None:
    """The name of the dict (a constant) if a condition only compares its contents with former contents.

    These are compared by identity, or are numbers or strings, so they cannot change without a change of the dict.
    """
    parts = [*ast.walk(condition)]
    found = {*_looked_into(parts)}
    if len(found) != 1 or type(constants.get(*found)) is not dict:
        return None
    [name] = found
    bound = {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    known = all([part.id in constants or part.id in bound | _FUNCTIONS for part in parts if isinstance(part, ast.Name)])
    return name if known and all(map(_compares, parts)) else None


def _looked_into(parts: Sequence[ast.AST]) -> Iterator[str]:
    """The names whose contents a condition of these parts reads; "" for a value without a name."""
    for node in parts:
        if isinstance(node, ast.Attribute | ast.Subscript):
            if not (isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute)):
                yield node.value.id if isinstance(node.value, ast.Name) else ""
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
            yield node.args[0].id if isinstance(node.args[0], ast.Name) else ""


def _compares(node: ast.AST) -> bool:
    """Whether a part of a condition reads nothing but the dict."""
    match node:
        case ast.Attribute(attr=method):
            return method in _METHODS
        case ast.Subscript(slice=key):
            return isinstance(key, ast.Constant)
        case ast.Call(func=ast.Name(name)):
            return name in _FUNCTIONS
        case ast.Call(func=ast.Attribute()):
            return True
        case ast.Compare(ops=[ast.IsNot()]):
            return True
        case ast.Compare(ops=[ast.NotEq()], comparators=[ast.Constant()]):
            return True
    return isinstance(node, _FORMS)
