"""The entities of Write and Read: for each, its messages, its changes and its queries."""
