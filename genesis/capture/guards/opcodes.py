"""The names that a code object reads and changes, by the instructions that guards understand, on Python 3.11 to 3.14.

Code with any other instruction is not replayed.
"""

from __future__ import annotations

import copy
import dis
import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import CodeType

# Instructions on the stack, local variables and objects that depend on nothing else.
_STACK = """
    CACHE NOP RESUME EXTENDED_ARG PRECALL KW_NAMES PUSH_NULL POP_TOP COPY SWAP NOT_TAKEN MAKE_CELL COPY_FREE_VARS LOAD_CLOSURE
    LOAD_CONST LOAD_SMALL_INT LOAD_COMMON_CONSTANT LOAD_ASSERTION_ERROR RETURN_CONST RETURN_VALUE RETURN_GENERATOR YIELD_VALUE
    LOAD_FAST LOAD_FAST_CHECK LOAD_FAST_AND_CLEAR LOAD_FAST_LOAD_FAST LOAD_FAST_BORROW LOAD_FAST_BORROW_LOAD_FAST_BORROW
    STORE_FAST STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST STORE_FAST_MAYBE_NULL DELETE_FAST
    JUMP JUMP_NO_INTERRUPT JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP
    POP_JUMP_IF_FALSE POP_JUMP_IF_TRUE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE
    POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_TRUE POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE
    POP_JUMP_BACKWARD_IF_FALSE POP_JUMP_BACKWARD_IF_TRUE POP_JUMP_BACKWARD_IF_NONE POP_JUMP_BACKWARD_IF_NOT_NONE
    MAKE_FUNCTION SET_FUNCTION_ATTRIBUTE
"""
# Operators, calls, loops and containers. They may run code of objects, which the watch sees.
_OPERATORS = """
    UNARY_POSITIVE UNARY_NEGATIVE UNARY_NOT UNARY_INVERT TO_BOOL BINARY_OP COMPARE_OP IS_OP CONTAINS_OP
    BINARY_SUBSCR BINARY_SLICE STORE_SUBSCR STORE_SLICE DELETE_SUBSCR CALL CALL_KW CALL_FUNCTION_EX CALL_INTRINSIC_1
    CALL_INTRINSIC_2 GET_ITER FOR_ITER END_FOR POP_ITER GET_LEN GET_YIELD_FROM_ITER SEND END_SEND UNPACK_SEQUENCE UNPACK_EX
    BUILD_TUPLE BUILD_LIST BUILD_SET BUILD_MAP BUILD_CONST_KEY_MAP BUILD_SLICE BUILD_STRING LIST_APPEND LIST_EXTEND
    LIST_TO_TUPLE SET_ADD SET_UPDATE MAP_ADD DICT_MERGE DICT_UPDATE FORMAT_VALUE FORMAT_SIMPLE FORMAT_WITH_SPEC CONVERT_VALUE
    MATCH_CLASS MATCH_KEYS MATCH_MAPPING MATCH_SEQUENCE BEFORE_WITH LOAD_SPECIAL WITH_EXCEPT_START
    PUSH_EXC_INFO POP_EXCEPT CHECK_EXC_MATCH RAISE_VARARGS RERAISE CLEANUP_THROW
"""
_GLOBALS = "LOAD_GLOBAL LOAD_NAME LOAD_FROM_DICT_OR_GLOBALS STORE_GLOBAL DELETE_GLOBAL STORE_NAME DELETE_NAME"
_CELLS = "LOAD_DEREF LOAD_CLASSDEREF LOAD_FROM_DICT_OR_DEREF STORE_DEREF DELETE_DEREF LOAD_LOCALS"
_ATTRIBUTES = "LOAD_ATTR LOAD_METHOD LOAD_SUPER_ATTR IMPORT_FROM STORE_ATTR DELETE_ATTR"
_OTHERS = "IMPORT_NAME LOAD_BUILD_CLASS"
UNDERSTOOD = frozenset(" ".join([_STACK, _OPERATORS, _GLOBALS, _CELLS, _ATTRIBUTES, _OTHERS]).split())

_OF_GLOBALS, _OF_ATTRIBUTES = frozenset(_GLOBALS.split()), frozenset(_ATTRIBUTES.split())
_CHANGES = frozenset({"STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL"})
_BETWEEN = frozenset({"CACHE", "PUSH_NULL", "PRECALL", "EXTENDED_ARG", "NOT_TAKEN"})

# Functions that look attributes up by computed names.
DYNAMIC = frozenset({
    "getattr", "hasattr", "vars", "dir", "setattr", "delattr", "attrgetter", "methodcaller", "__dict__", "__getattribute__",
    "__getattr__", "__setattr__", "__delattr__", "__get__", "__set__", "__reduce_ex__", "__getstate__", "__dir__",
})
# These look up all attributes of `x`. Other objects whose attributes they look up are new.
_COPYING = frozenset({copy.copy.__code__, copy.deepcopy.__code__, copy._reconstruct.__code__})  # type: ignore[attr-defined]
_IDENTITY = frozenset({"id", "is_", "is_not"})
_TEXT = frozenset({"str", "repr", "ascii", "format"})
ASKING = {function.__name__: function for function in (getattr, hasattr, setattr, delattr, vars, dir)}
_NAMED = frozenset({"LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_DEREF"})  # push the value of a variable
Arguments = Sequence[Sequence[dis.Instruction]]  # the instructions that compute each argument of a call

# Methods that Python calls without naming them.
_SPECIAL = frozenset({
    "__init__", "__new__", "__call__", "__enter__", "__exit__", "__getitem__", "__setitem__", "__delitem__", "__contains__",
    "__iter__", "__next__", "__len__", "__bool__", "__int__", "__float__", "__index__", "__getattr__", "__setattr__",
    "__delattr__", "__get__", "__set__", "__repr__", "__str__", "__format__",
})


@dataclass
class CodeNames:
    """The names in a code object, by their use.

    Attributes:
        globals: read or changed among globals and builtins.
        attributes: read, changed or tested for, of any object.
        called: globals and attributes that are only called directly.
        searched: those that are only searched (`key in module.table`), or only added to.
        absent: those that need not exist: tested for, or set.
        foreign: attributes of objects other than the first argument.
        imports: (name, level) of modules.
        asks: the arguments of calls such as `getattr(x, name)`, by the offset of the call; none if the name is a constant.
        owners: variables, never bound anew in the code, whose attributes are looked up by computed names in other ways.
        dynamic: attributes of others are.
        catches: it continues after an exception, which may show that something is absent.
        compares: it compares objects by identity, other than with constants.
        unknown: (instruction, line) of the first instruction that is not understood.
    """

    globals: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    called: set[str] = field(default_factory=set)
    searched: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)
    foreign: set[str] = field(default_factory=set)
    imports: set[tuple[str, int]] = field(default_factory=set)
    asks: dict[int, Arguments] = field(default_factory=dict)
    owners: set[str] = field(default_factory=set)
    dynamic: bool = False
    catches: bool = False
    compares: bool = False
    unknown: tuple[str, int] | None = None


class SeenCode:
    """What the code that has run so far can look up by name.

    Attributes:
        ran: the code objects.
        attributes: names of attributes in any code; `users_attributes`: those in the user's code.
        mentioned: names of globals and attributes in the user's code; `handed_on`: those that it does more with than call.
        read: names that any code does more with than call or search.
        tested_for: names that need not exist.
        is_dynamic: any attribute may be looked up.
        catches: the call may continue after an exception.
        compares: it compares objects by identity.
        called: names of the library's functions that the user's code may call.
    """

    def __init__(self) -> None:
        self.ran: set[CodeType] = set()
        self.attributes: set[str] = set()
        self.users_attributes: set[str] = set()
        self.mentioned: set[str] = set()
        self.handed_on: set[str] = set()
        self.read: set[str] = set()
        self.tested_for: set[str] = set()
        self.is_dynamic = self.catches = self.compares = False
        self.called: set[str] = {*_SPECIAL}


@functools.lru_cache(maxsize=4096)
def names_in(code: CodeType) -> CodeNames:
    """The names in `code`.

    >>> found = names_in((lambda x: getattr(x.y, "size", 0) + len(limit)).__code__)
    >>> sorted(found.globals), sorted(found.attributes), found.absent, sorted(found.called), found.dynamic
    (['getattr', 'len', 'limit'], ['size', 'y'], {'size'}, ['getattr', 'len'], False)
    """
    found = CodeNames()
    kept: set[str] = set()
    every = [*dis.get_instructions(code)]
    instructions = [i for i in every if i.opname not in _BETWEEN]
    nulled = _before_null(every, instructions)
    caught = 0
    owner = code.co_varnames[0] if code.co_argcount and not binds(code, code.co_varnames[0]) else None
    line = code.co_firstlineno
    for index, instruction in enumerate(instructions):
        name, value = instruction.opname, instruction.argval
        line = getattr(instruction, "line_number", None) or instruction.starts_line or line
        if name not in UNDERSTOOD:
            found.unknown = found.unknown or (name, line)
        elif name in _OF_GLOBALS or name in _OF_ATTRIBUTES:
            (found.globals if name in _OF_GLOBALS else found.attributes).add(value)
            called = calls_result(instruction) or instruction.offset in nulled
            following = instructions[index + 1] if index + 1 < len(instructions) else instruction
            searched = following.opname == "CONTAINS_OP" or (following.argval == "add" and calls_result(following))
            (found.called if called else found.searched if searched else kept).add(value)
            found.compares |= value in _IDENTITY
            if value in _TEXT:
                found.attributes.add("__qualname__")  # of classes
            if name in _CHANGES:
                found.absent.add(value)
            if name in _OF_ATTRIBUTES and (index == 0 or instructions[index - 1].argval != owner):
                found.foreign.add(value)
            if value in DYNAMIC:
                if called and name in _OF_GLOBALS and value in ASKING:
                    _ask([i for i in every if i.offset > instruction.offset], found)
                elif (whose := _owner(instructions[: index + 1], code)) is not None:
                    found.owners.add(whose)
                else:
                    found.dynamic = True
        elif name == "IS_OP":
            found.compares |= instructions[index - 1].opname != "LOAD_CONST"
        elif name.startswith("FORMAT_"):
            found.attributes.add("__qualname__")
        elif name == "IMPORT_NAME":
            level = instructions[index - 2].argval
            found.imports.add((value, level if isinstance(level, int) else 0))
        elif name == "MATCH_CLASS":  # looks up names in `__match_args__` and on the stack
            found.attributes.add("__match_args__")
            found.dynamic = True
        elif name == "POP_EXCEPT":  # not if a handler ends by raising
            caught += index + 1 == len(instructions) or instructions[index + 1].opname != "RERAISE"
        elif name == "WITH_EXCEPT_START":  # continues if `__exit__` says so, whose call the watch sees
            caught -= 1
    if code in _COPYING:
        found.owners, found.dynamic = {"x"}, False
    found.catches = caught > 0
    found.called -= kept | found.searched
    found.searched -= kept | found.absent
    return found


def _before_null(every: list[dis.Instruction], instructions: list[dis.Instruction]) -> set[int]:
    """The offsets of look-ups whose result a PUSH_NULL says will be called, since Python 3.13; `module.function` among them."""
    nulled = {before.offset for before, i in itertools.pairwise(every) if i.opname == "PUSH_NULL"}
    for before, i in itertools.pairwise(instructions):
        if i.opname == "LOAD_ATTR" and (before.offset in nulled or (before.opname == "LOAD_GLOBAL" and (before.arg or 0) & 1)):
            nulled.add(i.offset)
    return nulled


def calls_result(i: dis.Instruction) -> bool:
    """Whether a look-up is followed by a call of the result."""
    can_be_marked = i.opname == "LOAD_GLOBAL" or (i.opname in ("LOAD_ATTR", "LOAD_SUPER_ATTR") and _LOADS_METHODS)
    return i.opname == "LOAD_METHOD" or (can_be_marked and bool((i.arg or 0) & 1))


_LOADS_METHODS = "LOAD_METHOD" not in dis.opmap  # since Python 3.12 LOAD_ATTR does so, marked by a bit


def _ask(following: Sequence[dis.Instruction], found: CodeNames) -> None:
    """Note what `getattr` or the like, which was just pushed, looks up."""
    call, arguments = _call(following)
    names = arguments[1:2]
    if names and len(names[0]) == 1 and isinstance(names[0][0].argval, str) and names[0][0].opname == "LOAD_CONST":
        for table in (found.attributes, found.absent, found.foreign):
            table.add(names[0][0].argval)
        arguments = []
    if call is not None:
        found.asks[call.offset] = arguments


def _call(following: Sequence[dis.Instruction]) -> tuple[dis.Instruction | None, Arguments]:
    """The call of what was just pushed, with the instructions that compute each argument; None if that is not certain."""
    following = [one for k, i in enumerate(following) for one in _parts(i)
                 if i.opname not in ("PRECALL", "CACHE") and (k or i.opname != "PUSH_NULL")]
    depths: list[int] = []
    depth = 0
    for k, i in enumerate(following):
        if i.opname == "CALL" and i.arg == depth > 0:
            starts = [len(depths) - 1 - depths[::-1].index(number) for number in range(depth)]
            return i, [following[start:end] for start, end in itertools.pairwise([*starts, k])]
        if i.opcode in _JUMPS or depth < (k > 0):
            break
        depths.append(depth)
        depth += -1 - (i.arg or 0) if i.opname == "CALL" else dis.stack_effect(i.opcode, i.arg)
    return None, []


def _parts(instruction: dis.Instruction) -> Sequence[dis.Instruction]:
    """An instruction, or two for one that loads two variables, since Python 3.13."""
    if type(instruction.argval) is not tuple or "LOAD_FAST_" not in instruction.opname or "STORE" in instruction.opname:
        return [instruction]
    return [instruction._replace(opname="LOAD_FAST", opcode=dis.opmap["LOAD_FAST"], argval=name) for name in instruction.argval]


def _owner(before: Sequence[dis.Instruction], code: CodeType) -> str | None:
    """The variable of which the last instruction looks up the `__dict__`, or an attribute of `super()`; None for another."""
    name: str | None = None
    last, first = before[-1], code.co_varnames[0] if code.co_argcount else None
    if last.argval == "__dict__":
        name = before[-2].argval if len(before) > 1 and before[-2].opname in _NAMED else None
    elif last.opname == "LOAD_SUPER_ATTR":
        name = first if [i.argval for i in before[-4:-1]] == ["super", "__class__", first] else None
    elif [(i.opname, i.argval) for i in before[-3:-1]] == [("LOAD_GLOBAL", "super"), ("CALL", 0)]:
        name = first
    is_kept = name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] and not binds(code, str(name))
    return name if is_kept or name in code.co_freevars else None


def binds(code: CodeType, name: str) -> bool:
    """Whether code, or a function within it, binds an argument of that name anew."""
    inner = [one for one in code.co_consts if isinstance(one, CodeType) and name in one.co_freevars]
    return any(i.opname.startswith(_BINDING) and name in (i.argval if type(i.argval) is tuple else (i.argval,))
               for i in dis.get_instructions(code)) or any(binds(one, name) for one in inner)


_BINDING = ("STORE_FAST", "DELETE_FAST", "STORE_DEREF", "DELETE_DEREF")
_JUMPS = frozenset(dis.hasjrel + dis.hasjabs)
