"""One figure or table of a paper each, computed again. A new file here is a new study."""
