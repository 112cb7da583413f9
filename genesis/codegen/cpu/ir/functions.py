"""Modules, functions and basic blocks, as text."""

from __future__ import annotations

from genesis.codegen.cpu.ir.types import POINTER, FunctionType, Type, Value


class Slot(Value):
    """Memory on the stack."""

    __slots__ = ("holds",)

    def __init__(self, holds: Type, text: str) -> None:
        super().__init__(POINTER, text)
        self.holds = holds


class Phi(Value):
    """A value by predecessor block; those of later blocks are added once they exist."""

    __slots__ = ("incoming",)

    def __init__(self, type_: Type, text: str, builder: object) -> None:
        super().__init__(type_, text, builder)
        self.incoming: list[tuple[Value, Block]] = []

    def add_incoming(self, value: Value, block: Block) -> None:
        self.incoming.append((value, block))

    def __str__(self) -> str:
        ways = ", ".join([f"[{value.text}, %{block.name}]" for value, block in self.incoming])
        return f"{self.text} = phi {self.type.text} {ways}"


class Module:
    def __init__(self, name: str = "") -> None:
        self.globals: dict[str, Function] = {}
        self.metadata: dict[str, str] = {}  # by its text

    def add_metadata(self, text: str) -> str:
        return self.metadata.setdefault(text, f"!{len(self.metadata)}")

    def __str__(self) -> str:
        nodes = [f"{name} = !{{{text}}}" for text, name in self.metadata.items()]
        return "\n".join([*map(str, self.globals.values()), *nodes, ""])


class Function(Value):
    """A function. One without blocks is a declaration of another module's."""

    __slots__ = ("args", "attributes", "blocks", "function_type", "linkage", "module", "name", "names", "slots")

    def __init__(self, module: Module, function_type: FunctionType, name: str) -> None:
        super().__init__(POINTER, f'@"{name}"')
        self.module, self.function_type, self.name = module, function_type, name
        self.args = [Value(kind, f"%a{n}") for n, kind in enumerate(function_type.args)]
        self.blocks: list[Block] = []
        self.slots: list[str] = []  # stack allocations
        self.linkage = ""
        self.attributes: set[str] = set()
        self.names = 0  # of values and blocks, so far
        assert name not in module.globals, name
        module.globals[name] = self

    def append_basic_block(self, name: str) -> Block:
        self.names += 1
        self.blocks.append(Block(self, f"{name}.{self.names}"))
        return self.blocks[-1]

    def __str__(self) -> str:
        kind = f"{self.function_type.return_type} {self.text}"
        if not self.blocks:
            return f"declare {kind}({', '.join(map(str, self.function_type.args))})"
        given = ", ".join([f"{a.type} {a.text}" for a in self.args])
        body = "\n".join(map(str, self.blocks))
        return f"define {self.linkage} {kind}({given}) {' '.join(sorted(self.attributes))} {{\n{body}\n}}"


class Block:
    """A basic block: its lines, and the terminator."""

    __slots__ = ("end", "function", "lines", "name")

    def __init__(self, function: Function, name: str) -> None:
        self.function, self.name = function, name
        self.lines: list[str | Phi] = []
        self.end: str | None = None

    def __str__(self) -> str:
        slots = self.function.slots if self is self.function.blocks[0] else ()
        return "\n".join([f"{self.name}:", *slots, *map(str, self.lines), str(self.end)])
