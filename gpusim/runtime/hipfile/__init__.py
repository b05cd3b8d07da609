"""hipFile: scores each request, and serves it by the fast path or through a bounce buffer (`hipfile.md`)."""
