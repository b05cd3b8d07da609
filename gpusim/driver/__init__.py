"""amdgpu and KFD: SVM ranges, the fault worker, placement, migration, VRAM."""
