"""The entities of Write and Read, each with its messages, updates and queries."""
