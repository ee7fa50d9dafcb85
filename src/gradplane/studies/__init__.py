"""Studies: figures and tables of the papers, computed again.

papers/ has one study per file, which an experiment file's [study] table names; `launch` runs one
into a folder. The other modules compute: pure functions that return rows. May import every room but
cli.
"""
