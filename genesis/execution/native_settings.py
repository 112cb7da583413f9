"""Guards of the settings that plans depend on, as instructions."""

from __future__ import annotations

from genesis.runtime import determinism, number_of_threads
from genesis.runtime.instructions import Constant, Instructions
from genesis.runtime.team import team
from genesis.runtime.timeline import timeline


def require_settings(code: Instructions) -> None:
    """Go on if no program is under way, nobody watches, and the settings are the present ones, by their values."""
    code.emit("WORD", team.under_way, 0)
    code.require_attribute(timeline, "spans", None)
    code.emit("EQUAL", code.item(code.constant(determinism.setting), 0), Constant(determinism.setting[0]))
    settings = code.constant(vars(number_of_threads))
    with code.unless_passed(settings):
        threads, planned = code.item(settings, "_threads"), number_of_threads.get_num_threads()
        unset = code.emit("SKIP_IS", threads, None, 0) if number_of_threads.default_threads() == planned else None
        code.emit("EQUAL", threads, Constant(planned))
        if unset is not None:
            code.skip_from(unset)
