"""What holds for all tests."""

import os

# The Python modules are what is tested, with stand-ins for their parts, which compiled classes refuse; that the
# compiled ones do the same is tested in `tests/native`. `make bench` measures both.
os.environ.setdefault("GPUSIM_PURE_PYTHON", "1")

from hypothesis import settings

os.environ["MPLBACKEND"] = "Agg"  # also for the processes that tests start

# The same examples on every machine and in every run. No deadline: a busy machine is no failure.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
