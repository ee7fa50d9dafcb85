"""The entry point of `python -m gradplane`."""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # the current folder, where a file may have the name of a module that we need

from gradplane.cli.main import main

main()
