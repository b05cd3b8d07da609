"""What holds for all tests."""

import os

from hypothesis import settings

os.environ["MPLBACKEND"] = "Agg"  # also for the processes that tests start

# The same examples on every machine and in every run. No deadline: a busy machine is no failure.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
