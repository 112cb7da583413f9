"""Trees of containers, registered classes among them, taken apart and put together."""

import collections

from torch.utils import _pytree as trees

Pair = collections.namedtuple("Pair", "a b")
tree = {
    "x": [1, (2, None)], "n": Pair(3, [4]), "o": collections.OrderedDict(z=5), "d": collections.defaultdict(list, k=6),
    "q": collections.deque([7], 3),
}
leaves, structure = trees.tree_flatten(tree)
print(leaves, structure.num_leaves, trees.tree_unflatten(leaves, structure) == tree, trees.tree_map(str, tree)["q"].maxlen)
print(trees.tree_map(lambda x, y: (x, y), [1, 2], [3, [4]]))
print(trees.tree_map(lambda x: "leaf", [1, [2]], is_leaf=lambda x: isinstance(x, list) and len(x) == 1))
print(trees.tree_map_only(int, lambda x: x + 1, [1, "a"]), trees.tree_all_only(int, lambda x: x > 0, [1, "a"]))
print(trees.LeafSpec(), trees.tree_structure(1) == trees.LeafSpec(), trees.tree_structure([1]) == trees.tree_structure([2]))
print([node is list for node in (trees._get_node_type([]), trees._get_node_type(Pair(1, 2)))], list in trees.SUPPORTED_NODES)


class Held:
    def __init__(self, value):
        self.value = value


print(type(trees.tree_leaves(Held(1))[0]).__name__)
trees.register_pytree_node(Held, lambda held: ([held.value], None), lambda parts, _: Held(*parts))
print(trees.tree_leaves([Held([1, 2])]), trees.tree_map(lambda x: x * 2, Held([1, 2])).value)
for attempt in (
    lambda: trees.register_pytree_node(Held, None, None), lambda: trees.tree_map(max, [1, 2], [3]),
    lambda: trees.tree_map(max, [1], (3,)), lambda: trees.tree_unflatten([1], structure),
    lambda: trees.tree_map(max, {"a": 1}, {"b": 1}), lambda: trees.tree_leaves_with_path(Held(1)),
):
    try:
        print(attempt())
    except ValueError:
        print("ValueError")
whole = trees.tree_structure([1, [2, 3]])
print(*[trees._broadcast_to_and_flatten(part, whole) for part in (1, [1, 2], [1])])
print(trees.tree_map(lambda a, b: a + b, {"a": 1, "b": 2}, {"b": 10, "a": 20}))
paths = [path for path, _ in trees.tree_flatten_with_path(tree)[0]]
print(*map(trees.keystr, paths), paths[0], *[trees.key_get(tree, path) for path in paths])
print(trees.tree_map_with_path(lambda path, a, b: (len(path), a + b), {"a": [1, 2]}, {"a": [3, 4]}))
print(trees._dict_flatten({"a": 1}), trees._dict_flatten_with_keys({"a": 1}), trees._dict_unflatten([2], ["a"]))
