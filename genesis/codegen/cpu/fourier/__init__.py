"""Fourier transforms as generated code: Stockham's passes over vectors of complex numbers (van Loan, 1992)."""
