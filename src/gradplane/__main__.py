"""The entry point of `python -m gradplane`."""

from gradplane.cli.main import main

main()
