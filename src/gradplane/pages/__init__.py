"""Every page, from one kit: reports of runs and sweeps, the viewers, a plan's page and a fit's.

The kit is `kit.py`, `figures.py` and the templates; it imports no room, and any page imports it.
"""
