"""Which modules have compiled twins: those that stand on a profile of the runs in `tests/benchmarks`.

A class and those that inherit from it are compiled together.
"""

MODULES = (
    *(
        f"gpusim.engine.{name}"
        for name in (
            *(
                "agenda",
                "alarm",
                "channel",
                "components",
                "cores",
                "environment",
                "express",
                "fairness",
                "flows",
            ),
            *("fluid", "links", "mutex", "record", "server", "stages", "timeline", "work"),
        )
    ),
    *(
        f"gpusim.hardware.{name}"
        for name in (
            *(
                "commanded",
                "dispatch",
                "flights",
                "gpu",
                "gpuvm",
                "lane_faults",
                "lanes",
                "memory",
                "operand",
            ),
            *("retry", "stretch", "translation", "wavefronts"),
        )
    ),
    *(
        f"gpusim.driver.{name}"
        for name in (
            *("attributes", "events", "fault_log", "fault_queue", "fault_server", "fault_worker", "gart"),
            *("kfd_process", "merge", "migrate", "page_tables", "placement", "restore", "ring_order"),
            *(
                "stepwise_worker",
                "svm_range",
                "table_writer",
                "tries",
                "vector_worker",
                "vram",
                "waiting",
                "watch",
            ),
        )
    ),
    *(f"gpusim.linux.{name}" for name in ("address_space", "paging")),
)
