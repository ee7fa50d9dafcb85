"""The environment in which libraries calculate in one thread: they read it when they are loaded."""

ENVIRONMENT = {
    f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "MKL", "BLIS", "OMP", "NUMBA")
}
