"""User space: HIP allocation, streams, copies, prefetch, launches."""
