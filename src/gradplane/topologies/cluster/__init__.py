"""Real machines: hosts are workers of Dask Distributed, switches are found at addresses."""
