"""From an experiment file to a resolved and checked experiment."""
