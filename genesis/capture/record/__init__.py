"""Recording a call: the tensors and numbers that it reads and writes, its programs, its results."""
