"""The rest of the kernel: address spaces, page allocation, CPU page tables, HMM."""
