"""The studies: each file reproduces one figure or table of a paper. A new file is a new study."""
