"""The real network: Mininet's namespaces, veth links and processes."""
