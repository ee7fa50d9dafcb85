"""The report page of one run or of several side by side."""
