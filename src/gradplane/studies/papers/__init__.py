"""The studies, one figure or table of a paper each. A new file here is a new study."""
