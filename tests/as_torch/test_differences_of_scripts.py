"""What docs/differences.md says of the door is so."""

import pytest

import genesis
from genesis.as_torch.finder import look_up
from genesis.as_torch.missing import MissingError, missing


def test_what_is_missing_raises_an_error_that_is_not_implemented():
    absent = missing("torch.sparse.mm")
    with pytest.raises(NotImplementedError, match=r"torch\.sparse\.mm: genesis has no such thing"):
        absent(1)
    assert issubclass(MissingError, NotImplementedError) and not isinstance(1, absent)

    class Derived(absent):
        pass

    with pytest.raises(MissingError, match=r"torch\.sparse\.mm"):
        Derived()


def test_a_device_that_is_not_there_has_a_name_and_is_refused_when_it_is_used():
    if not genesis.cuda.is_available():
        assert genesis.device("cuda").type == "cuda"
        with pytest.raises(ValueError, match="not available"):
            genesis.zeros(2, device=genesis.device("cuda"))


def test_compilers_of_pytorch_return_what_they_are_given():
    def function(x):
        return x + 1

    for path in ("jit.script", "jit.trace", "jit.freeze", "jit.ignore", "compiler.disable", "compiler.allow_in_graph"):
        home, _, name = f"torch.{path}".rpartition(".")
        assert look_up(home, name)(function) is function
    compiled = look_up("torch", "compile")(function, backend="eager", mode="reduce-overhead", options={})
    assert isinstance(compiled, genesis.capture.Compiled)
    assert look_up("torch", "compile")(function, disable=True) is function
    assert not look_up("torch.compiler", "is_compiling")()


def test_settings_are_remembered_and_change_nothing():
    config = look_up("torch._dynamo", "config")
    with config.patch(verbose=True):
        assert config.verbose
    assert not config.verbose
    assert look_up("torch", "use_deterministic_algorithms") is genesis.use_deterministic_algorithms


def test_dual_levels_do_not_nest():
    with genesis.autograd.forward_ad.dual_level(), pytest.raises(RuntimeError, match="do not nest"):
        genesis.autograd.forward_ad.enter_dual_level()


def test_tangents_follow_values_where_gradients_follow_a_convention():
    x, of = genesis.ones(2, 2), lambda weight: genesis.nn.functional.embedding(genesis.tensor([0, 1]), weight, padding_idx=1)
    with genesis.autograd.forward_ad.dual_level():
        dual = genesis.autograd.forward_ad.make_dual(x, x)
        assert genesis.autograd.forward_ad.unpack_dual(of(dual)).tangent.tolist() == [[1, 1], [1, 1]]
        with genesis.no_grad():
            assert genesis.autograd.forward_ad.unpack_dual(dual * 2).tangent is None
    assert genesis.autograd.functional.jvp(of, x, x)[1].tolist() == [[1, 1], [1, 1]]


def test_a_gradient_of_several_parameters_is_scaled_once():
    parameters, gradient = [genesis.nn.Parameter(genesis.ones(2)) for _ in range(2)], genesis.ones(2) * 3
    for parameter in parameters:
        parameter.grad = gradient
    genesis.nn.utils.clip_grad_norm_(parameters, 1.0)
    assert parameters[0].grad.tolist() == pytest.approx([0.5, 0.5])


def test_dictionaries_of_modules_are_filled_only_with_what_they_are_given():
    class Late(genesis.nn.ModuleDict):
        def __init__(self):
            super().__init__()
            self.ready = True

        def update(self, modules):
            assert self.ready

    assert len(Late()) == 0


def test_the_device_meta_can_be_named_and_holds_no_values():
    assert genesis.device("meta") != genesis.device("cpu") and str(genesis.device("meta")) == "meta"
    with pytest.raises(NotImplementedError, match="has no values"):
        genesis.zeros(2, device="meta").tolist()
