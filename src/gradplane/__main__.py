"""The entry point of `python -m gradplane`."""

import sys

if not (__package__ or sys.flags.safe_path):
    del sys.path[0]  # this folder, of `python .../gradplane`; the current one is gone already

from gradplane.cli.main import main

main()
