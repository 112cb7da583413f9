"""`python -m genesis doctor` reports on the installation, with commands that repair missing parts.
`python -m genesis graph SCRIPT` runs a script and writes a page that explores the programs it ran.
`python -m genesis profile SCRIPT` runs a script and prints where its time went.
"""

import sys

from genesis.debug.doctor import doctor
from genesis.debug.graph_command import graph_command
from genesis.profiler.profile_command import profile_command

COMMANDS = {"graph": graph_command, "profile": profile_command}

command, arguments = sys.argv[1:2], sys.argv[2:]
if command and command[0] in COMMANDS:
    sys.exit(COMMANDS[command[0]](arguments))
if command != ["doctor"] or arguments:
    sys.exit("usage: python -m genesis doctor | graph SCRIPT | profile SCRIPT")
doctor()
