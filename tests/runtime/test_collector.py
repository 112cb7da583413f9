"""What was imported is old to Python's collector of cycles, and garbage all the same if it is that."""

import pytest

from .kernels import run_python


def test_what_was_imported_is_old():
    young = """
        import gc
        import genesis
        print(gc.get_count()[1:], any(part is genesis.__dict__ for part in gc.get_objects(generation=2)))
    """
    assert run_python(young) == "(0, 0) True"


def test_garbage_from_before_the_import_is_collected():
    garbage = """
        import gc, weakref
        class Ring:
            pass
        gc.disable()
        ring = Ring()
        ring.itself, seen = ring, weakref.ref(ring)
        del ring
        import genesis
        print(seen() is None, gc.isenabled(), gc.collect() > 0, seen() is None)
    """
    assert run_python(garbage) == "False False True True"


def test_what_others_froze_stays_frozen():
    frozen = """
        import gc
        gc.freeze()
        before = gc.get_freeze_count()
        import genesis
        print(gc.get_freeze_count() > before // 2 > 0)
    """
    assert run_python(frozen) == "True"


def test_a_plan_is_old_at_once_and_garbage_from_before_it_is_collected():
    planned = """
        import gc, weakref
        import genesis
        from genesis.execution.plan import Plan
        class Ring:
            pass
        collected = []
        gc.callbacks.append(lambda phase, info: collected.append(info["generation"]))
        ring = Ring()
        ring.itself, seen = ring, weakref.ref(ring)
        del ring
        genesis.ones(3).exp().sum().item()
        print(seen() is None, any(type(part) is Plan for part in gc.get_objects(generation=2)), 2 in collected, gc.isenabled())
    """
    assert run_python(planned) == "True True False True"


def test_with_the_collector_off_a_plan_collects_nothing():
    planned = """
        import gc, weakref
        import genesis
        class Ring:
            pass
        gc.disable()
        ring = Ring()
        ring.itself, seen = ring, weakref.ref(ring)
        del ring
        genesis.ones(3).exp().sum().item()
        print(seen() is None, gc.isenabled(), gc.collect() > 0, seen() is None)
    """
    assert run_python(planned) == "False False True True"


@pytest.mark.parametrize("due", [0, 1])  # by time, and by what tensors hold
def test_garbage_that_lived_as_a_plan_was_made_is_collected_as_others_are_made(due):
    planned = """
        import gc, weakref
        import genesis
        from genesis.runtime import references
        class Ring:
            pass
        ring = Ring()
        ring.itself, seen = ring, weakref.ref(ring)
        genesis.ones(3).exp().sum().item()
        del ring
        gc.set_threshold(0)
        kept_alive = genesis.tensor([1.0])
        references._full_due[DUE] = 0
        genesis.ones(4).exp().sum().item()
        kept = seen() is not None
        gc.set_threshold(700)
        genesis.ones(5).exp().sum().item()
        print(kept, seen() is None)
    """
    assert run_python(planned.replace("DUE", str(due))) == "True True"
