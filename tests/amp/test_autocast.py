"""Autocast: where it is on, and that it ends where it should."""

import threading

import pytest
import torch

import genesis


@pytest.fixture(autouse=True)
def off_afterwards():
    yield
    genesis.enable_autocast = False


def product_dtype():
    return (genesis.ones(2, 3) @ genesis.ones(3, 2)).dtype


def test_products_are_16_bit_inside_and_float32_after():
    with genesis.autocast():
        assert product_dtype() is genesis.bfloat16
    assert product_dtype() is genesis.float32


@pytest.mark.parametrize("arguments", [
    (genesis.float16,), ("cpu", genesis.float16), (genesis.device("cpu"), genesis.float16, True),
])
def test_a_dtype_or_a_device_may_come_first(arguments):
    with genesis.autocast(*arguments):
        assert product_dtype() is genesis.float16
    with genesis.amp.autocast("cpu", dtype=genesis.float16, cache_enabled=False):
        assert product_dtype() is genesis.float16


def test_the_innermost_context_says():
    with genesis.autocast():
        with genesis.autocast(enabled=False):
            assert product_dtype() is genesis.float32
            with genesis.autocast(genesis.float16):
                assert product_dtype() is genesis.float16
            assert product_dtype() is genesis.float32
        assert product_dtype() is genesis.bfloat16


def test_one_context_may_be_entered_again_within_itself():
    context = genesis.autocast()
    with context:
        with context:
            pass
        assert product_dtype() is genesis.bfloat16
    assert not genesis.is_autocast_enabled()


@pytest.mark.skipif(genesis.cuda.is_available(), reason="there is a GPU")
def test_nothing_is_cast_on_a_gpu_where_there_is_none():
    with genesis.autocast():
        assert genesis.is_autocast_enabled("cpu") and not genesis.is_autocast_enabled("cuda")
    assert not torch.is_autocast_enabled("cuda")  # nor does it raise there
    with pytest.raises(ValueError, match="'nothing' is not available"):
        genesis.is_autocast_enabled("nothing")


def test_an_exception_restores_the_state():
    with pytest.raises(ZeroDivisionError), genesis.autocast():
        _ = 1 / 0
    assert product_dtype() is genesis.float32


def test_the_flag_switches_it_on_wherever_no_context_is():
    assert genesis.enable_autocast is False
    genesis.enable_autocast = True
    assert genesis.is_autocast_enabled() and product_dtype() is genesis.bfloat16
    with genesis.autocast(genesis.float16):
        assert product_dtype() is genesis.float16
    assert genesis.enable_autocast is True and product_dtype() is genesis.bfloat16
    with genesis.autocast(enabled=False):
        assert product_dtype() is genesis.bfloat16  # on by the flag or by a context
    genesis.enable_autocast = False
    assert product_dtype() is genesis.float32


def test_a_context_is_on_whatever_the_flag_says():
    with genesis.autocast():
        genesis.enable_autocast = False
        assert product_dtype() is genesis.bfloat16


def test_the_flag_takes_only_truth_values():
    with pytest.raises(TypeError, match="enable_autocast: wants True or False, got 'yes'"):
        genesis.enable_autocast = "yes"
    assert not genesis.is_autocast_enabled()


def in_a_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_a_context_belongs_to_its_thread_and_the_flag_to_all():
    with genesis.autocast():
        assert in_a_thread(product_dtype) is genesis.float32
    genesis.enable_autocast = True
    assert in_a_thread(product_dtype) is genesis.bfloat16


def test_it_decorates_functions():
    @genesis.autocast(dtype=genesis.float16)
    def forward():
        """Forward."""
        return product_dtype()

    assert forward() is genesis.float16 and product_dtype() is genesis.float32
    assert forward.__doc__ == "Forward."
    with genesis.autocast():
        assert forward() is genesis.float16 and product_dtype() is genesis.bfloat16


def test_other_dtypes_and_devices_are_refused():
    with pytest.raises(TypeError, match=r"autocast: dtype must be genesis.bfloat16 or genesis.float16, got genesis.int32"):
        genesis.autocast(dtype=genesis.int32)
    with pytest.raises(ValueError, match="nowhere"):
        genesis.autocast("nowhere")


def test_a_repeated_program_finds_the_plan_of_its_own_mode():
    x = genesis.ones(4, 4)

    def step():
        return (x @ x * 2).tolist()

    for _ in range(2):
        plain = step()
        with genesis.autocast():
            cast = step()
    genesis.debug.reset_stats()
    assert step() == plain
    with genesis.autocast():
        assert step() == cast
    assert genesis.debug.stats()["plans_built"] == 0
