"""The tables of BFRuntime, a module for each kind; all are ControlTables."""
