"""Public functions and methods of tensors that are more than a row of the operation table."""
