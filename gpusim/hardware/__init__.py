"""Silicon: compute units and wavefronts, translation, retry faults, memories, copy engines and links."""
