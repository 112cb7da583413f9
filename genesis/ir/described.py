"""A mark of classes."""


class Described:
    """A base of library objects that are defined by their attributes: guards of compiled calls compare all of these."""

    __slots__ = ()
