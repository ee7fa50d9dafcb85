"""The network for real: Mininet's namespaces, veth links and processes."""
