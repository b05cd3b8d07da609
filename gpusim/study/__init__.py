"""From runs to knowledge: grids of runs, measured against simulated. Every study simulates as `gpusim run`
does.
"""
