"""Matrices by LAPACK, called by function pointer: a kernel runs a table of steps on each matrix of a batch."""
