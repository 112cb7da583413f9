"""Instructions that build the return value of a native replay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import copy
from functools import partial
from typing import Any

from genesis.capture.record.results import Recipe, array_in
from genesis.capture.replay.host_program import HostProgram, NotNativeError
from genesis.execution.result_words import ResultWords, word_address
from genesis.runtime.instructions import Instructions, Register
from genesis.tensor.handle import Storage, Tensor

KNOWN_BEFORE = "it returns former gradients, constants, or views of tensors that were there before"


class NativeResults:
    """Emits instructions that build results from the values of programs, whose memory is that of `words`."""

    def __init__(
        self, code: Instructions, leaves: Sequence[Register], programs: Sequence[HostProgram], words: Sequence[ResultWords]
    ) -> None:
        self._code, self._leaves, self._programs, self._words = code, leaves, programs, words
        self._tensors: dict[int, Register] = {}
        self._arrays: dict[tuple[int, int], Register] = {}
        self._owners: Counter[Register] = Counter()
        self._storages: dict[int, Register] = {}
        self._containers: dict[int, Register] = {}

    def build(self, tree: tuple[str, Any]) -> Register:
        """The register of the return value, or of a part of it."""
        code, (how, what) = self._code, tree
        if how == "made":
            return self.made(what)
        if how == "item":
            return code.call(Tensor.item, self.build(what))
        if how == "leaf":
            return self._leaves[what]
        if how == "found" and what[0] in ("leaf", "tensor"):
            return self._leaves[what[1]] if what[0] == "leaf" else code.constant(what[1].tensor)
        if how == "same":
            return code.constant(what)
        if how != "made of":
            raise NotNativeError(KNOWN_BEFORE)
        if id(what) not in self._containers:
            make, parts = what
            built = code.tuple(*map(self.build, parts))
            self._containers[id(what)] = built if make is tuple else code.call(make, built)
        return self._containers[id(what)]

    def made(self, recipe: Recipe) -> Register:
        """The register of a recipe's tensor, built once a call; NotNativeError unless programs compute it and its root."""
        code, known = self._code, self._tensors.get(id(recipe))
        if known is not None:
            return known
        if recipe.base.__class__ not in (Recipe, type(None)) or (recipe.value is not None and recipe.value[0] != "output"):
            raise NotNativeError(KNOWN_BEFORE)
        root = None if recipe.base is None else self.made(recipe.base)
        if recipe.value is None:
            assert root is not None
            array = code.call(partial(array_in, recipe.layout), root)
        else:
            program, position = recipe.key
            array = self.array(self._programs[program].value_at[position], program)
        tensor = code.new(recipe.kind)
        self._owners[array] += 1
        code.assign(tensor, "_requires_grad", code.constant(False))
        code.assign(tensor, "_array", array)
        for name, flag in recipe.flags:
            code.assign(tensor, name, code.call(partial(copy, flag)) if name == "_versions" else code.constant(flag))
        if root is not None:
            self._share(recipe, tensor, root)
        self._tensors[id(recipe)] = tensor
        return tensor

    def _share(self, recipe: Recipe, view: Register, root: Register) -> None:
        """As `handle.share_storage`, for a root that the call makes, with the recipe's lag in versions."""
        code, base = self._code, recipe.base
        storage = self._storages.get(id(base))
        if storage is None:
            storage = self._storages[id(base)] = code.new(Storage)
            code.assign(storage, "root", code.constant(None))
            code.assign(root, "_storage", storage)
        seen = dict(base.flags).get("_changes", Tensor._changes) - recipe.lag
        for name, value in {"_base": root, "_layout": code.constant(recipe.layout), "_seen": code.constant(seen),
                            "_storage": storage}.items():
            code.assign(view, name, value)

    def array(self, value: int, program: int) -> Register:
        """The register of a program's value."""
        result = self._arrays.get((program, value))
        if result is None:
            result = self._arrays[program, value] = self._code.register()
            self._owners[result] += 1
            self._code.emit("OBJECT", result, word_address(self._words[program].results, value))
        return result

    def arrays_of(self, program: int) -> dict[int, Register]:
        """The registers so far of a program's values."""
        return {value: register for (which, value), register in self._arrays.items() if which == program}

    def note_owners(self) -> None:
        """Tell the words how many owners each value has got so far."""
        for program, words in enumerate(self._words):
            words.expect({value: self._owners[register] for value, register in self.arrays_of(program).items()})
