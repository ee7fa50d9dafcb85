"""The entities of Write and Read: the messages, changes and queries of each."""
