"""Python's collector of cycles passes over what was imported, and collects garbage all the same if there is any."""

import pytest

from .kernels import run_python


@pytest.mark.parametrize(("before", "seen"), [
    ("import numpy", "False"), ("own = []", "True"), ("import tests.tolerances", "True"), ("def own(): pass", "True"),
])
def test_what_was_imported_is_seen_only_beside_what_may_be_garbage_and_is_old_then(before, seen):
    look = "any(part is genesis.__dict__ for part in gc.get_objects())"
    old = "any(part is genesis.__dict__ for part in gc.get_objects(generation=2))"
    program = f"import gc\n{before}\nimport genesis\nprint(gc.get_count()[1:], {look}, {old})"
    assert run_python(program) == f"(0, 0) {seen} {seen}"


def test_what_is_made_after_the_import_is_collected():
    garbage = """
        import gc, weakref, genesis
        class Ring:
            pass
        ring = Ring()
        ring.itself, seen = ring, weakref.ref(ring)
        del ring
        print(gc.get_freeze_count() > 10_000, gc.collect() > 0, seen() is None)
    """
    assert run_python(garbage) == "True True True"


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
