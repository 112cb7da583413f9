"""Reference counts are measured at import, so that they hold on every interpreter, however it passes local variables."""

from genesis.runtime.references import IN_LIST, is_sole_owner, owned_elsewhere, reference_count


class Thing:
    pass


def test_the_count_in_a_list_is_that_of_the_owners():
    thing, things = Thing(), [Thing()]
    assert [*map(reference_count, things)] == [IN_LIST]
    assert [*map(reference_count, [thing])] == [IN_LIST + 1], "a local name is an owner"
    others = [things[0], things[0]]
    assert is_sole_owner(things, len(others)) and not is_sole_owner(things)


def test_a_parameter_and_the_name_of_its_caller_are_two_owners():
    def owners(thing):
        return is_sole_owner([thing], 2), is_sole_owner([thing], 1)

    thing = Thing()
    assert owners(thing) in {(True, False), (False, True)}, "an interpreter may lend it to the callee"
    assert is_sole_owner([thing], 1)


def test_what_has_another_owner_is_found_among_many():
    things = [Thing() for _ in range(5)]
    kept = things[1], things[4]
    assert owned_elsewhere(things) == [*kept]
    del kept
    assert owned_elsewhere(things) == []
