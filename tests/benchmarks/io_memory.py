"""`python -m tests.benchmarks.io_memory STEP FEW MANY`: what MANY requests take of memory above what FEW take.

Prints MiB: the peak of a run of MANY less the peak of a run of FEW before it. It is a process of its own because a peak
is that of its whole life.
"""

import sys

from gpusim.result import Result
from gpusim.scenario import loader
from gpusim.simulation import simulate
from tests.benchmarks.peak_memory import import_all, resident

TEXT = """\
version: 1
name: requests
system: {{node: mi300x-16nvme, gpus: 1}}
processes:
  - name: app
    buffers: {{x: {{size: 256MiB, allocator: hipMalloc}}}}
    files:
      f: {{size: 4GiB, filesystem: xfs, drive: nvme0}}
      cached: {{size: 64MiB, filesystem: xfs, drive: nvme1, cached: 100%}}
    threads:
      main:
        - {{load: {step}}}
"""
STEPS = {
    "sync": "{file: f, buffer: x, io_size: 4KiB, threads: 4, size: %dB}",
    "async": "{file: f, buffer: x, io_size: 4KiB, api: async, depth: 8, size: %dB}",
    "posix": "{file: cached, buffer: x, io_size: 4KiB, api: posix, threads: 2, size: %dB}",
}


def run(step, requests):
    text = TEXT.format(step=STEPS[step] % (requests * 4096)).replace("load: {", "name: load, file_read: {")
    scenario = loader.loads(text)
    result = Result.from_run(scenario, simulate(scenario, record="summary"))
    done = result.summary["io"]
    assert (
        sum(done[path]["read"]["requests"] for path in ("fastpath", "fallback", "posix") if path in done)
        == requests
    )


def main():
    step, few, many = sys.argv[1:]
    import_all()
    run(step, int(few))
    before = resident("VmHWM")
    run(step, int(many))
    print(resident("VmHWM") - before)


if __name__ == "__main__":
    main()
