"""A folder on the path of Python processes that one under the door starts, whose `torch` installs the door there."""
