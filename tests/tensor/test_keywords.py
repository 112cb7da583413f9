"""Arguments by keyword are recorded at their positions: one program for both spellings."""

import pytest

import genesis
from genesis.ops.registry import OPERATIONS
from genesis.ops.signatures import in_positions
from genesis.runtime.devices import CPU
from genesis.tracing.state import thread_state
from genesis.tracing.token import arguments_in
from tests.tolerances import assert_close

SPELLINGS = {
    "all by keyword": (lambda x: genesis.sum(x, dim=1, keepdim=True), lambda x: genesis.sum(x, 1, True)),
    "another order": (lambda x: genesis.clamp(x, max=2.0, min=-0.5), lambda x: genesis.clamp(x, -0.5, 2.0)),
    "None for a default": (lambda x: genesis.addmm(x, x, x, beta=None), lambda x: genesis.addmm(x, x, x)),
    "a tensor": (lambda x: genesis.where(x > 0, x, other=-x), lambda x: genesis.where(x > 0, x, -x)),
    "a list": (lambda x: genesis.cat([x, x], dim=1), lambda x: genesis.cat([x, x], 1)),
}


def _recorded(call):
    genesis.synchronize()
    result = call(genesis.tensor([[1.0, -2.0], [3.0, 0.25]]))
    return [line[-1] for line in thread_state.traces[CPU.name].lines], result


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_keywords_and_positions_are_one_call(spelling):
    (by_keyword, result), (by_position, expected) = map(_recorded, SPELLINGS[spelling])
    assert_close(result, expected)
    assert by_keyword[-1][0] is by_position[-1][0]
    assert arguments_in(by_keyword[-1])[1] == {}


def test_what_lies_between_has_its_default():
    clamp = OPERATIONS["clamp"]
    assert in_positions(clamp, ("x",), {"max": 2.0}) == (("x", None, 2.0), {})
    assert in_positions(clamp, ("x",), {"unknown": 2.0}) == (("x",), {"unknown": 2.0})
    assert in_positions(clamp, ("x", 1.0), {"min": 2.0}) == (("x", 1.0), {"min": 2.0})  # given twice: the definition refuses


def test_arguments_given_twice_or_unknown_raise():
    x = genesis.ones(3)
    with pytest.raises(TypeError):
        genesis.clamp(x, 0.0, min=1.0)
    with pytest.raises(TypeError):
        genesis.sum(x, colour=1)
    with pytest.raises(TypeError, match="value is None"):
        genesis.addcmul(x, x, x, value=None)


def test_one_argument_by_two_names_raises():
    with pytest.raises(TypeError, match="by two names: dim, axis"):
        genesis.sum(genesis.ones(2, 3), dim=0, axis=1)


def test_none_that_is_no_default_is_given_on():
    x = genesis.tensor([[3.0, 4.0], [12.0, 0.0]])
    assert_close(genesis.nn.functional.normalize(x, dim=None), x / 13)


def test_axes_are_named_where_a_tensor_changes_its_shape_in_place():
    x = genesis.ones(2, 3)
    assert x.unsqueeze_(dim=0).shape == (1, 2, 3) and x.transpose_(dim0=0, dim1=2).shape == (3, 2, 1)
    assert x.squeeze_(dim=2).shape == (3, 2) and x.swapaxes_(axis0=0, axis1=1).shape == (2, 3)
    with pytest.raises(TypeError):
        x.squeeze_(dims=1)


def test_squeezed_axes_are_a_tuple_or_several_arguments():
    x = genesis.ones(1, 1, 3)
    assert x.squeeze(0, 1).shape == x.squeeze((0, 1)).shape == (3,) and x.squeeze(dim=(0, 2)).shape == (1, 3)
    assert genesis.vmap(lambda row: row.squeeze(0, 1))(genesis.ones(4, 1, 1, 3)).shape == (4, 3)
