"""One way to run a recorded call again."""
