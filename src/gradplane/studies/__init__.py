"""Numerical studies behind the papers' figures.

`nmse` computes: pure functions that return rows. papers/ has a study a file, which an experiment
file's [study] table names; `launch` runs one into a run folder.
"""
