"""Executes traces: plans, flushes, results and failures."""
