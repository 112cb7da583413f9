"""`genesis.ops`: the functions of Tensors by name, other functions in their place, and operations of the user's own."""

import copy
import pickle
import threading

import pytest

import genesis
from genesis import nn
from genesis.functions.public_names import function_names


@pytest.fixture
def registered():
    """Registers functions; all is undone at the end."""
    names = []

    def register(name, function):
        genesis.ops.register_function(name, function)
        names.append(name)

    yield register
    for name in names:
        genesis.ops.unregister_function(name)


@pytest.fixture
def counted(registered):
    """Registers a function that counts its calls and computes by the library's own."""
    calls = []

    def register(name):
        def function(*args, **kwargs):
            calls.append((name, threading.get_ident()))
            return getattr(genesis.ops, name)(*args, **kwargs)

        registered(name, function)
        return calls

    return register


X = genesis.tensor([1.0, -2.0, 3.0])


def test_every_public_operation_is_in_ops():
    shown = dir(genesis.ops)
    assert not [name for name in function_names() if name not in shown or not callable(getattr(genesis.ops, name))]


def test_ops_compute_on_tensors():
    assert genesis.ops.add(X, 1).tolist() == [2, -1, 4]
    assert genesis.ops.maximum(X, 0).tolist() == [1, 0, 3]
    assert [p.tolist() for p in genesis.ops.split(X, [1, 2])] == [[1], [-2, 3]]
    assert genesis.ops.cat((X, X), dim=0).shape == (6,)
    assert genesis.ops.matmul(X, X).item() == 14


def test_an_unknown_operation_is_no_attribute():
    with pytest.raises(AttributeError, match=r"'genesis.ops' has no operation 'nothing'"):
        genesis.ops.nothing  # noqa: B018


def test_operators_methods_and_functions_take_the_registered_function(counted):
    calls = counted("add")
    results = [X + X, X + 1, 1 + X, X.add(1), genesis.add(X, 1), genesis.ops.add(X, other=1)]
    assert len(calls) == len(results)
    assert [r.tolist() for r in results[1:]] == [[2, -1, 4]] * 5


@pytest.mark.parametrize(("name", "forms"), [
    ("relu", [lambda: X.relu(), lambda: genesis.relu(X), lambda: nn.functional.relu(X), lambda: nn.ReLU()(X)]),
    ("neg", [lambda: -X, lambda: X.neg()]),
    ("abs", [lambda: abs(X), lambda: X.abs()]),
    ("matmul", [lambda: X @ X, lambda: X.matmul(X), lambda: genesis.matmul(X, X)]),
    ("reshape", [lambda: X.reshape(1, 3), lambda: genesis.reshape(X, (3, 1))]),
    ("where", [lambda: genesis.where(X > 0, X, 0), lambda: X.where(X > 0, X)]),
    ("split", [lambda: X.split(1), lambda: genesis.split(X, [1, 2])]),
    ("eq", [lambda: X == X, lambda: X == 1, lambda: genesis.eq(X, X)]),
    ("sum", [lambda: X.sum(), lambda: X.sum(axis=0), lambda: genesis.sum(X, 0)]),
    ("dropout", [lambda: nn.functional.dropout(X, 0.0), lambda: nn.Dropout(0.0)(X)]),
])
def test_every_form_of_an_operation_is_routed(counted, name, forms):
    expected = [str(form()) for form in forms]
    calls = counted(name)
    assert [str(form()) for form in forms] == expected
    assert [called for called, _ in calls].count(name) == len(forms)


def test_a_registered_function_is_called_in_every_thread(counted):
    calls = counted("mul")
    thread = threading.Thread(target=lambda: X * 2)
    thread.start()
    thread.join()
    X * 2
    assert len({ident for _, ident in calls}) == 2


def test_while_one_thread_is_inside_a_function_another_is_routed(registered):
    inside, done, seen = threading.Event(), threading.Event(), []

    def slow(a, b):
        if threading.current_thread() is not threading.main_thread():
            inside.set()
            done.wait(10)
        seen.append(threading.current_thread().name)
        return a - (-1 * b)

    registered("add", slow)
    thread = threading.Thread(target=lambda: X + X, name="other")
    thread.start()
    assert inside.wait(10)
    X + X
    done.set()
    thread.join()
    assert seen == ["MainThread", "other"]


def test_the_guard_is_lifted_when_the_function_raises(registered):
    def fails(a, b):
        raise KeyError("mine")

    registered("add", fails)
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            X + X


def test_two_functions_may_call_each_other(registered, counted):
    registered("sub", lambda a, b: a + (-1 * b))
    calls = counted("add")
    assert (X - X).tolist() == [0, 0, 0] and len(calls) == 1


def test_backward_and_optimizers_are_not_routed(counted):
    w = genesis.tensor([1.0, 2.0], requires_grad=True)
    optimizers = [genesis.optim.SGD([w], lr=0.1, momentum=0.9), genesis.optim.Adam([w], lr=0.1)]
    loss = (w * w + w.exp()).sum()
    loss.item()
    calls, *_ = [counted(name) for name in ("add", "mul", "sub", "div", "sqrt", "exp", "neg", "matmul", "sum")]
    loss.backward(retain_graph=True)
    loss.backward()
    nn.utils.clip_grad_norm_([w], max_norm=1.0)
    for optimizer in optimizers:
        optimizer.step()
    w.tolist()
    assert calls == []


def test_in_place_forms_stay_the_librarys(counted):
    calls = counted("add")
    y = X.clone()
    y += 1
    assert y.add_(1).tolist() == [3, 0, 5] and calls == []


def test_gradients_flow_through_a_registered_function(registered):
    registered("mul", lambda a, b: genesis.ops.mul(a, b) * 3)
    w = genesis.tensor(2.0, requires_grad=True)
    (w * 5).backward()
    assert w.grad.item() == 15


@pytest.mark.parametrize("name", ["nothing", "adam_update", "Tensor", "__add__", "nn", "zeros"])
def test_only_operations_can_be_replaced(name):
    with pytest.raises(ValueError, match=f"register_function: '{name}' is no operation of genesis"):
        genesis.ops.register_function(name, lambda *args: None)


def test_what_is_registered_can_be_called():
    with pytest.raises(TypeError, match="'add' wants a function, got int 3"):
        genesis.ops.register_function("add", 3)
    with pytest.raises(TypeError, match="'mine' wants a function, got NoneType None"):
        genesis.ops.register_operation("mine", None)


def test_nothing_to_unregister():
    with pytest.raises(ValueError, match="nothing is registered under 'add'"):
        genesis.ops.unregister_function("add")
    with pytest.raises(ValueError, match="nothing is registered under 'mine'"):
        genesis.ops.unregister_operation("mine")


def test_what_is_unregistered_is_the_librarys_own_again():
    genesis.ops.register_function("add", lambda a, b: None)
    genesis.ops.unregister_function("add")
    assert (X + X).tolist() == [2, -4, 6]


def test_an_operation_of_the_users_own():
    genesis.ops.register_operation("mine", lambda x, p: x * p)
    try:
        assert genesis.mine(X, 2).tolist() == genesis.ops.mine(X, 2).tolist() == [2, -4, 6]
        genesis.ops.register_operation("mine", lambda x: x)
        assert genesis.mine(X) is X
    finally:
        genesis.ops.unregister_operation("mine")
    assert not hasattr(genesis, "mine") and not hasattr(genesis.ops, "mine")


@pytest.mark.parametrize("name", ["add", "nn", "Tensor", "zeros", "float32", "split", "elementwise", "register_function"])
def test_an_operation_takes_no_name_that_is_taken(name):
    with pytest.raises(ValueError, match=f"genesis has a '{name}' already"):
        genesis.ops.register_operation(name, lambda x: x)


@pytest.mark.parametrize("name", ["", "two words", "1st", "_hidden", 7])
def test_an_operation_has_an_identifier_for_a_name(name):
    with pytest.raises(ValueError, match="is no public name"):
        genesis.ops.register_operation(name, lambda x: x)


class Labelled(genesis.Tensor):
    @staticmethod
    def __new__(cls, data, *, label):
        made = genesis.as_tensor(data).as_subclass(cls)
        made.label = label
        return made


def test_tensors_of_classes_whose_new_wants_arguments_are_copied_and_pickled():
    tensor = Labelled([1.0, 2.0], label="a")
    for again in (copy.copy(tensor), copy.deepcopy(tensor), pickle.loads(pickle.dumps(tensor))):
        assert type(again) is Labelled and again.label == "a" and again.tolist() == [1.0, 2.0]
