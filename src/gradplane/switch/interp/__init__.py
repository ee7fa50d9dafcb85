"""The reference interpreter: what a program means, as Python closures made once per node."""
