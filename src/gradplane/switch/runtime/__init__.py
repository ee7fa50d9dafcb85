"""State of a running switch: what the engines and the control plane share."""
