"""Simulated time and contention, and the record of what happened and why."""
