"""Numerical studies behind the papers' figures: pure functions that return rows."""
