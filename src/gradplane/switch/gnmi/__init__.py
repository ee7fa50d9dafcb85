"""gNMI: the interfaces of a live switch as openconfig-interfaces has them."""
