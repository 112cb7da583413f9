"""What a replay has taken in Python is taken back once."""

from genesis.capture.replay.taken_steps import TakenSteps


class Step:
    """A step of an optimizer that notes what undoes it, and is another one if `settings` are None."""

    def __init__(self, undone, name, settings):
        self._undone, self._name, self._settings = undone, name, settings

    def again(self, undo):
        undo.append(lambda: self._undone.append(self._name))
        return self._settings


def test_steps_are_undone_once_and_last_ones_first():
    undone = []
    taken = TakenSteps()
    assert taken.take([Step(undone, "a", (1,)), Step(undone, "b", (2,))], None) and undone == []
    taken.take_back()
    taken.take_back()  # as whoever learns of the failure does
    assert undone == ["b", "a"]


def test_a_step_that_would_be_another_undoes_those_before():
    undone = []
    taken = TakenSteps()
    assert not taken.take([Step(undone, "a", (1,)), Step(undone, "b", None)], None)
    taken.take_back()
    assert undone == ["b", "a"]
