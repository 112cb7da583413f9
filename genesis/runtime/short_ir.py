"""LLVM IR as text, with shorter forms of what is written most; `spelled_out` makes LLVM's own of them.

    if ptr %x == null or %is.odd: %label        a branch; without `else %other`, a false one goes on with the next line
    unless i64 %k ult %n and ..: ret void       here a true one does; to return is as good as a label
    %x = call ptr @f(..) else %label            the same where %x is null
    ret ptr %x dropping %a, %b                  disowns objects (`owning_ir`) and returns
    load i64, ptr %p[%k]                        element %k of those at %p; stores, too
    load %s: 1 i64 a, ..                        fields of the structure %s that %s points to; their addresses are %a.at, ..
    fields %s: 1 a, ..                          addresses alone
    for %k = 0 ult %n by 8:                     a loop, while the comparison holds; `by 1` need not be said. What begins with
    next %k                                     its body ends here: a branch to %next.k goes on with the next, to %end.k behind

Comparisons are LLVM's predicates, but for == and !=. Terms are joined by `and` or by `or`. A block without an end goes on with
the next one. A line that begins as one of these forms and goes on otherwise raises ValueError. `declared` adds declarations,
`with_words` puts numbers and other text in place of words in capitals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_LABEL = re.compile(r"([\w.]+):")
_ENDS = re.compile(r"  (br |ret |switch |unreachable)")
_FIELDS = re.compile(r"  (?:(load)|fields) %(\w+): ((?:\d+(?(1) \S+) [\w.]+(?:, |$))+)")
_ELEMENT = re.compile(r"(  (?:.* = load|store)(?: atomic)? (.+?)(?:,| \S+,) )ptr (\S+)\[(.+?)\](.*)")
_BRANCH = re.compile(r"  (if|unless) (.+?): (%[\w.]+|ret [^;]+?)(?: else (%[\w.]+))?(?: *;.*)?")
_FOR = re.compile(r"  for %([\w.]+) = (\S+) (\w+) (\S+?)(?: by (\d+))?:(?: *;.*)?")
_NEXT = re.compile(r"  next %([\w.]+)(?: *;.*)?")
_SHORT = re.compile(r"  (if|unless|load|fields|for|next)\b")
_OR_ELSE = re.compile(r"^(  (%[\w.]+) = call ptr .*\)) else (%[\w.]+|ret .+)$", re.MULTILINE)
_CALLED = re.compile(r"call (\w+)( \([^)]*\.\.\.\))? @([\w.]+)\((.*?)\)")
_KNOWN = re.compile(r"^(?:define|declare) .*?@([\w.]+)\(", re.MULTILINE)
_COMPARISON = re.compile(r"(\S+) (\S+) (\S+) (\S+)")
_PREDICATES = {"==": "eq", "!=": "ne"}


def spelled_out(text: str) -> str:
    """`text` without the shorter forms.

    >>> print(spelled_out("  load %s: 1 i64 a"))
      %a.at = getelementptr %s, ptr %s, i32 0, i32 1
      %a = load i64, ptr %a.at
    >>> print(spelled_out("  if i64 %k == 3: %done"))
      %if.0.0 = icmp eq i64 %k, 3
      br i1 %if.0.0, label %done, label %after.0
    after.0:
    """
    return "\n".join(_spelled_out(_OR_ELSE.sub(r"\1\n  if ptr \2 == null: \3", text).split("\n")))


def with_words(text: str, **words: object) -> str:
    """`text` with numbers, names or other text in place of words in capitals.

    >>> with_words("  ret i64 MOST", MOST=3)
    '  ret i64 3'
    """
    return re.sub(rf"\b(?:{'|'.join(words)})\b", lambda word: str(words[word[0]]), text)


def declared(text: str) -> str:
    """A module with declarations of what it calls and does not define, such as CPython's functions.

    >>> print(declared("  %x = call i64 @PyList_Size(ptr %list)"))
      %x = call i64 @PyList_Size(ptr %list)
    declare i64 @PyList_Size(ptr)
    """
    known, found = {*_KNOWN.findall(text)}, {}
    for kind, several, name, given in _CALLED.findall(text):
        if name not in known:
            taken = several.strip() or f"({', '.join(re.findall('(?:^|, )([^ ]+)', given))})"
            found[name] = f"declare {kind} @{name}{taken}"
    return "\n".join([text, *found.values()])


def _spelled_out(lines: Sequence[str]) -> Iterator[str]:
    goes_on, here = False, ""  # whether the present block has no end yet, and its label
    steps: dict[str, str] = {}  # of loops
    for number, line in enumerate(lines):
        if label := _LABEL.match(line):
            if goes_on:
                yield f"  br label %{label[1]}"
            goes_on, here = True, label[1]
            yield line
        elif goes_on and (loop := _FOR.fullmatch(line)):
            k, first, predicate, end, step = loop.groups()
            steps[k] = step or "1"
            yield from (f"  br label %for.{k}", f"for.{k}:", f"  %{k} = phi i64 [ {first}, %{here} ], [ %{k}.next, %next.{k} ]",
                        f"  %goes.on.{k} = icmp {predicate} i64 %{k}, {end}",
                        f"  br i1 %goes.on.{k}, label %do.{k}, label %end.{k}", f"do.{k}:")
            here = f"do.{k}"
        elif (loop := _NEXT.fullmatch(line)) and loop[1] in steps:
            k = loop[1]
            yield from [f"  br label %next.{k}"] * goes_on
            yield from (f"next.{k}:", f"  %{k}.next = add i64 %{k}, {steps[k]}", f"  br label %for.{k}", f"end.{k}:")
            goes_on, here = True, f"end.{k}"
        elif branch := _BRANCH.fullmatch(line):
            following = _LABEL.match(next((line for line in lines[number + 1 :] if line and not line.startswith(";")), ""))
            goes_to = branch[4] or f"%{following[1] if following else f'after.{number}'}"
            yield from _branch(branch, goes_to, number)
            goes_on = goes_to == f"%after.{number}"
            if goes_on:
                here = f"after.{number}"
                yield f"{here}:"
        elif not line or line.lstrip().startswith(";"):
            yield line
        else:
            goes_on = line.startswith("  ") and not _ENDS.match(line)
            yield from _instruction(line, number)


def _branch(branch: re.Match[str], goes_to: str, number: int) -> Iterator[str]:
    """A branch to its target, or to the label with which it goes on."""
    how, condition, target, _ = branch.groups()
    word = "and" if " and " in condition else "or"
    so_far = ""
    for k, term in enumerate(condition.split(f" {word} ")):
        if comparison := _COMPARISON.fullmatch(term):
            kind, left, predicate, right = comparison.groups()
            instruction = "fcmp" if kind in ("float", "double") else "icmp"
            yield f"  %if.{number}.{k} = {instruction} {_PREDICATES.get(predicate, predicate)} {kind} {left}, {right}"
            term = f"%if.{number}.{k}"
        if so_far:
            yield f"  %if.{number}.{k}.all = {word} i1 {so_far}, {term}"
            term = f"%if.{number}.{k}.all"
        so_far = term
    leaves = f"%return.{number}" if target.startswith("ret ") else target
    yes, no = (leaves, goes_to) if how == "if" else (goes_to, leaves)
    yield f"  br i1 {so_far}, label {yes}, label {no}"
    if leaves != target:
        yield f"{leaves[1:]}:"
        yield from _returned(f"  {target}")


def _returned(line: str) -> Iterator[str]:
    value, _, dropped = line.partition(" dropping ")
    for name in dropped.split(", ") if dropped else ():
        yield f"  call void @disown(ptr {name})"
    yield value


def _instruction(line: str, number: int) -> Iterator[str]:
    if line.startswith("  ret "):
        yield from _returned(line)
    elif found := _FIELDS.fullmatch(line):
        load, struct, fields = found.groups()
        for index, *kind, name in (field.split() for field in fields.split(", ")):
            address = f"{name}.at" if kind else name
            yield f"  %{address} = getelementptr %{struct}, ptr %{struct}, i32 0, i32 {index}"
            if load:
                yield f"  %{name} = load {kind[0]}, ptr %{address}"
    elif found := _ELEMENT.match(line):
        before, kind, base, index, after = found.groups()
        yield f"  %element.{number} = getelementptr {kind}, ptr {base}, i64 {index}"
        yield f"{before}ptr %element.{number}{after}"
    elif _SHORT.match(line):
        raise ValueError(f"line {number + 1} is none of the shorter forms: {line.strip()}")
    else:
        yield line
