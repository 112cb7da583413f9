"""`python -m genesis doctor` prints what genesis found to compute with, and the commands that repair what is missing.
`python -m genesis graph SCRIPT` runs a script and writes a page that explores the programs it ran.
"""

import sys

from genesis.debug.doctor import doctor
from genesis.debug.graph_command import graph_command

command, arguments = sys.argv[1:2], sys.argv[2:]
if command == ["graph"]:
    sys.exit(graph_command(arguments))
if command != ["doctor"] or arguments:
    sys.exit("usage: python -m genesis doctor | graph SCRIPT")
doctor()
