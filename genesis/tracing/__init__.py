"""What is recorded and not yet run: values, the open trace, the trie of calls seen before."""
