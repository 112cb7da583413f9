"""Public functions and tensor methods that are not just a row of the operation table."""
