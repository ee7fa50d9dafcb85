"""The command line: `gradplane` and `python -m gradplane`.

The commands, the tables that they print, and the prompt on a running switch. May import every room;
a command imports what it needs when it runs, so that the others start fast.
"""
