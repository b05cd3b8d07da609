"""Builds the machine that a scenario describes; the one place that wires."""
