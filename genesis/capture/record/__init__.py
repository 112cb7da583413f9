"""What a call did: the tensors and numbers that it reads and writes, its programs, its results."""
