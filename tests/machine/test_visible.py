"""Environment variables, by the rules of the runtime that reads them."""

from types import SimpleNamespace

import pytest

from gpusim.machine.visible import visible_devices
from tests.programs import launch, process, run_inside, scenario


def seen(env, count=4):
    devices = [SimpleNamespace(number=number) for number in range(count)]
    return [device.number for device in visible_devices(devices, env)]


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, [0, 1, 2, 3]),
        ({"HIP_VISIBLE_DEVICES": "2"}, [2]),
        ({"HIP_VISIBLE_DEVICES": "3,1"}, [3, 1]),
        ({"ROCR_VISIBLE_DEVICES": "1,2,3"}, [1, 2, 3]),
        ({"ROCR_VISIBLE_DEVICES": "1,2,3", "HIP_VISIBLE_DEVICES": "0,2"}, [1, 3]),  # of those that are left
        ({"HIP_VISIBLE_DEVICES": ""}, []),
        ({"HIP_VISIBLE_DEVICES": "-1"}, []),
        ({"HIP_VISIBLE_DEVICES": "0,9,1"}, [0]),  # it ends at the first bad entry
        ({"HIP_VISIBLE_DEVICES": "0, 1"}, [0, 1]),
        ({"HIP_VISIBLE_DEVICES": "1,1,0"}, [1]),
    ],
)
def test_which_gpus_a_process_sees(env, expected):
    assert seen(env) == expected


def test_gpu0_is_the_first_that_the_process_sees():
    program = process([launch(writes="x")], buffers={"x": "2MiB malloc"}, env={"HIP_VISIBLE_DEVICES": "1"})
    ran = run_inside(scenario(processes=[program], gpus=2))
    assert [counts.gpu for counts in ran.data.faults] == ["gpu[1]"]


def test_a_program_without_gpus_can_still_use_the_cpu():
    program = process(
        [{"host_touch": {"buffer": "x", "access": "write"}}],
        buffers={"x": "2MiB malloc"},
        env={"HIP_VISIBLE_DEVICES": ""},
    )
    assert run_inside(scenario(processes=[program])).outcome == "completed"
