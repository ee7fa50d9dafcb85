"""Losses, delays and stragglers at the host's end of its link."""
