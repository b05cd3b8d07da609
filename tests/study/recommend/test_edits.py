"""Edits of a scenario: steps go where they belong, whatever else is put in, and ranks keep their GPUs."""

import gpusim as gs
from gpusim.study.recommend import trials
from gpusim.study.recommend.discover import discover
from gpusim.study.recommend.knob import Assign, Insert, edited, words

LOOP = """
env: {HSA_XNACK: "1"}
buffers: {x: {size: 4MiB, allocator: hipMallocManaged}, y: {size: 4MiB, allocator: hipMallocManaged}}
threads:
  main:
    - {name: fill, host_touch: {buffer: x}}
    - name: rounds
      repeat:
        times: 3
        steps:
          - {name: change, host_touch: {buffer: x}}
          - {name: scale, stream: s, launch: {kernel: scale, reads: [x], writes: [y], wait: true}}
"""


def chosen(space, **labels):
    """The combination with these labels; knobs by the last word of their name."""
    return tuple(
        labels.get(knob.name.split(".")[-1] if knob.group == "prefetch" else knob.group, own)
        for knob, own in zip(space.knobs, space.own, strict=True)
    )


def verbs(steps):
    return [next(key for key in step if key not in ("name", "when", "stream")) for step in steps]


def test_steps_go_before_the_loop_or_into_it(make):
    scenario = make(LOOP)
    space = discover(scenario, only=["prefetch"])
    assert [knob.labels for knob in space.knobs] == [["none", "before scale", "before scale, each round"]] * 2
    both = scenario.with_(**space.changes(chosen(space, x="before scale, each round", y="before scale")))
    main = both.raw["processes"][0]["threads"]["main"]
    assert verbs(main) == ["host_touch", "prefetch", "repeat"]
    inner = main[2]["repeat"]["steps"]
    assert verbs(inner) == ["host_touch", "prefetch", "launch"]
    assert inner[1] == {"prefetch": {"buffer": "x", "to": "gpu0"}, "stream": "s"}
    assert main[1]["prefetch"]["buffer"] == "y"


def test_a_prefetch_in_each_round_helps_what_comes_back_in_each_round(make):
    found = gs.recommend(make(LOOP), only=["prefetch"])
    assert found.best.changed["prefetch of app.x"] == "before scale, each round"


def test_a_buffer_that_a_step_allocates_is_prefetched_and_advised_after_that(make):
    scenario = make("""
env: {HSA_XNACK: "1"}
buffers: {x: {size: 4MiB, allocator: hipMallocManaged}}
threads:
  main:
    - repeat:
        times: 2
        steps:
          - alloc: {buffer: x}
          - {name: scale, launch: {kernel: scale, reads: [x], wait: true}}
          - free: {buffer: x}
""")
    space = discover(scenario, only=["prefetch", "advice"])
    labels = {knob.group: knob.labels for knob in space.knobs}
    assert labels["prefetch"] == ["none", "before scale, each round"]
    choice = chosen(space, x="before scale, each round", advice="accessed by gpu0")
    changed = scenario.with_(**space.changes(choice))
    inner = changed.raw["processes"][0]["threads"]["main"][0]["repeat"]["steps"]
    assert verbs(inner) == ["alloc", "advise", "prefetch", "launch", "free"]
    assert gs.run(changed).outcome == "completed"


def test_each_rank_prefetches_to_its_own_gpu(make):
    scenario = make(
        """
env: {HSA_XNACK: "1"}
buffers: {x: {size: 2MiB, allocator: hipMallocManaged}}
threads: {main: [{name: scale, launch: {kernel: scale, reads: [x], gpu: "gpu${rank}", wait: true}}]}
"""
    ).with_(**{"system.gpus": 2, "processes.app.count": 2})
    space = discover(scenario, only=["prefetch"])
    changed = scenario.with_(**space.changes(chosen(space, x="before scale")))
    targets = [process.threads["main"][0].args.to for process in changed.processes]
    assert targets == ["gpu0", "gpu1"]


def test_all_places_are_those_of_the_tree_as_it_was():
    tree = {"a": [1, {"b": [2, 3]}, 4], "parameters": {"used": 1, "other": 2}, "c": "${used} ${other}"}
    edits = [
        Insert(("a", 1), {"new": 1}, order=1),
        Insert(("a", 1), {"new": 0}),
        Insert(("a", 1, "b", 1), {"new": 2}),
        Insert(("a", 3), {"new": 3}),
        Assign(("a", 1, "b", 0), 9),
        Assign(("c",), "${other}"),
    ]
    made = edited(tree, edits)
    assert made["a"] == [1, {"new": 0}, {"new": 1}, {"b": [9, {"new": 2}, 3]}, 4, {"new": 3}]
    assert made["parameters"] == {"other": 2}  # nothing uses the other one any more
    assert tree["a"][1] == {"b": [2, 3]}
    assert words(tree, edits[3]) == "step {new: 3} at the end of a"
    assert edited(tree, [Assign(("c",), None)]) == {"a": tree["a"], "parameters": {}}


def test_what_this_version_cannot_simulate_is_refused_and_the_others_go_on(make, monkeypatch):
    def picky(scenario):
        if scenario.processes[0].env["HSA_XNACK"] == "0":
            raise gs.NotSupportedYet("too hard")
        return simulated(scenario)

    simulated = trials.simulated
    monkeypatch.setattr(trials, "simulated", picky)
    found = gs.recommend(make(LOOP), only=["xnack"])
    assert found.best.changed == {}
    assert [one.outcome for one in found.failed] == ["refused: too hard"]
