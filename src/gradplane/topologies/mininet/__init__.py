"""The Mininet network: namespaces, veth links and processes."""
