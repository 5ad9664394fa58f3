"""One module per workload, each with a list `CASES`."""
