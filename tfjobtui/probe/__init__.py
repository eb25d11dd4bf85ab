"""One machine's figures: NVML's, and those of processes."""
