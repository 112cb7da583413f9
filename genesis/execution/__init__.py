"""From a trace to values in memory: plans, flushes, results, failures."""
