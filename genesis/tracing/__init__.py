"""Recorded calls that have not run yet: values, the open trace, and the trie of earlier calls."""
