"""Programs: kernels, access patterns and host threads."""
