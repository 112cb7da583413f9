"""The tensor: a handle on an array, and the path of a call from it to the trace."""
