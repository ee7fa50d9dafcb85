"""Architectures: how a package's blocks are strung together, and what its externs do."""
