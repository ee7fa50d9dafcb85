"""Sweeps: an experiment at every point of a grid and under several seeds, on Dask Distributed.

`plan` makes the list of runs, `sweep` carries it out on a cluster (`cluster`), each run in a
worker process (`run_task`); `tables` has the means and intervals. Dask, pandas and pyarrow come
with the extra `sweep` and are loaded where they are used.
"""
