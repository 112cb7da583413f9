"""`python -m genesis graph`, from a checkout."""

import sys

from genesis.debug.graph_command import graph_command

if __name__ == "__main__":
    sys.exit(graph_command())
