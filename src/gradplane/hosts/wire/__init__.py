"""The packets on the wire: aggregation headers and marked values."""
