"""`torch.utils._pytree`: structures as text, classes of tuples, dataclasses, beside PyTorch's."""

import time
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass

import pytest
import torch
import torch.utils._pytree as theirs

import genesis
from genesis.as_torch.finder import look_up

Pair = namedtuple("Pair", "a b")
TREE = {"a": [1, (2, None)], "b": OrderedDict(x=1), "c": defaultdict(list, {"z": 1}), "d": deque([1], 3), "e": []}


class Ours:
    def __getattr__(self, name):
        return look_up("torch.utils._pytree", name)


ours = Ours()


def test_structures_are_text_and_come_back():
    own, other = ours.tree_structure(TREE), theirs.tree_structure(TREE)
    text = ours.treespec_dumps(own)
    assert repr(own) == repr(other) and text == theirs.treespec_dumps(other) and ours.treespec_loads(text) == own
    assert ours.treespec_pprint(own) == theirs.treespec_pprint(other)
    assert (own.num_nodes, own.num_leaves, own.num_children) == (other.num_nodes, other.num_leaves, other.num_children)
    for lib in (ours, theirs):
        with pytest.raises(NotImplementedError):
            lib.treespec_dumps(lib.tree_structure(Pair(1, 2)))
        with pytest.raises(ValueError, match="protocol"):
            lib.treespec_dumps(lib.tree_structure([1]), 7)


@pytest.mark.parametrize("value", [
    Pair, Pair(1, 2), time.struct_time, time.localtime(), (1,), tuple, [1], torch.return_types.max])
def test_named_tuples_are_told_from_others(value):
    for name in ("is_namedtuple", "is_structseq", "is_namedtuple_instance", "is_structseq_instance", "is_namedtuple_class",
                 "is_structseq_class", "tree_is_leaf"):
        if isinstance(value, type) or not name.endswith("class"):
            assert getattr(ours, name)(value) == getattr(theirs, name)(value), name


def test_dataclasses_are_containers():
    for number, lib in enumerate((ours, theirs)):
        @dataclass
        class Point:
            x: int
            y: int | None = None
            tag: str = "-"

        with pytest.raises(ValueError, match="field_names does not include"):
            lib.register_dataclass(Point, field_names=["x"])
        lib.register_dataclass(Point, field_names=["x", "y"], drop_field_names=["tag"], serialized_type_name=f"point{number}")
        leaves, spec = lib.tree_flatten([Point(3, None, "t"), Point(1, 2)])
        assert leaves == [3, 1, 2] and lib.tree_unflatten([5, 6, 7], spec) == [Point(5), Point(6, 7)]
        assert [lib.keystr(path) for path, _ in lib.tree_leaves_with_path(Point(1, 2))] == [".x", ".y"]
        assert lib.treespec_loads(lib.treespec_dumps(spec)) == spec


def test_results_of_several_names_are_nodes():
    for library, tree in ((genesis, ours), (torch, theirs)):
        found = library.ones(2, 3).max(dim=1)
        leaves, structure = tree.tree_flatten(found)
        assert [x.tolist() for x in leaves] == [[1.0, 1.0], [0, 0]]
        assert type(tree.tree_unflatten(leaves, structure)) is type(found)
