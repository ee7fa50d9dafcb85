"""Re-enact a recorded run and compare its digests with the recorded ones."""
