"""What the reference says about shapes is what the examples' calls did."""

import genesis
from genesis.ops.registry import OPERATIONS
from tests.ops.samples import INTERNAL
from tools.shapes_of_examples import shapes_in_examples

MODULES = (genesis, genesis.nn.functional, genesis.linalg, genesis.fft, genesis.special)


def test_calls_by_other_names_and_of_modules_are_noted():
    assert shapes_in_examples(genesis.arcsin, MODULES) == ["(3,) float32 -> (3,) float32"]  # by its example of `asin`
    assert shapes_in_examples(genesis.nn.Flatten, MODULES) == ["(2, 3, 4) float32 -> (2, 12) float32"]
    assert shapes_in_examples(genesis.nn.functional.affine_grid, MODULES) == ["(1, 2, 3) float32 -> (1, 1, 2, 2) float32"]
    assert shapes_in_examples(genesis.get_num_threads, MODULES) == []
    assert genesis.asin.__name__ == "asin"  # nothing is left in the place of what was looked at


def test_every_public_operation_has_shapes():
    public = {name: getattr(owner, name) for owner in MODULES for name in OPERATIONS if hasattr(owner, name)}
    missing = [name for name, function in public.items() if name not in INTERNAL and not shapes_in_examples(function, MODULES)]
    assert len(public) > 350 and missing == []
