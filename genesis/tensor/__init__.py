"""The tensor: a handle on an array, and how calls on tensors are recorded in a trace."""
