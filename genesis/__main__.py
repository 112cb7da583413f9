"""`python -m genesis doctor` prints what genesis found to compute with, and the commands that repair what is missing."""

import sys

from genesis.debug.doctor import doctor

if sys.argv[1:] != ["doctor"]:
    sys.exit("usage: python -m genesis doctor")
doctor()
