"""The channel in virtual time against a fluid that keeps every job's remaining bytes, within 1e-9."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gpusim.engine.channel import Channel
from gpusim.engine.environment import Environment
from tests.theory.oracles import Fluid, Job

CAPACITY = 1.6  # bytes per ps
CAPS = (0.01, 0.3, 0.301, 1.0, 7.0, None)

sizes = st.one_of(st.integers(0, 10), st.integers(1, 10**10), st.sampled_from([4096, 65536, 2**21, 2**30]))
gaps = st.one_of(st.just(0), st.integers(0, 10), st.integers(0, 10**9))
arrival = st.tuples(st.just("enter"), gaps, st.integers(0, len(CAPS) - 1), sizes)
group = st.tuples(
    st.just("group"), gaps, st.integers(0, len(CAPS) - 1), sizes, st.sampled_from([1, 2, 7, 64, 300])
)
change = st.tuples(
    st.sampled_from(["cut", "resize", "reweight"]), gaps, st.integers(0, 30), st.integers(1, 10**8)
)
scripts = st.lists(st.one_of(arrival, group, change), min_size=1, max_size=40)


def water(jobs):
    """The level up to which everybody is filled, by walking down from the highest cap."""
    total = sum(job.weight for job in jobs)
    level = CAPACITY / total
    used = 0.0
    for job in sorted(jobs, key=lambda job: job.cap):
        if job.cap >= (CAPACITY - used) / total:
            level = (CAPACITY - used) / total
            break
        used += job.cap * job.weight
        total -= job.weight
    else:
        level = float("inf")
    return [min(job.cap, level) * job.weight for job in jobs]


def close(ours, theirs, elapsed=0):
    return abs(ours - theirs) <= 2 + 1e-9 * max(ours, theirs, elapsed)


@settings(max_examples=150)
@given(scripts)
def test_jobs_end_when_a_fluid_says(script):
    env = Environment()
    channel = Channel(env, "hbm", capacity_bytes_per_s=CAPACITY * 1e12)
    classes = [channel.job_class(None if cap is None else cap * 1e12) for cap in CAPS]
    fluid = Fluid(water)
    ours, theirs, groups = {}, {}, []

    def play():
        for number, (what, gap, *args) in enumerate(script):
            yield gap
            fluid.run_to(env.now)
            if what in ("enter", "group"):
                which, size, weight = (*args, 1)[:3]
                cap = float("inf") if CAPS[which] is None else CAPS[which]
                twin = theirs[number] = Job(size, {}, weight, cap)
                if what == "enter" and size == 0:
                    twin.end = env.now + 1  # it takes a picosecond, and nothing from the others
                else:
                    fluid.enter(twin)

                def done(number=number):
                    ours[number] = env.now

                if what == "enter":
                    classes[which].enter(size, done)
                else:
                    groups.append((classes[which].enter_group(size, weight, done), twin))
            elif groups:
                which, value = args
                job, twin = groups[which % len(groups)]
                if what == "cut":
                    moved = job.cut()
                    fluid.cut(twin)
                    assert close(moved, twin.moved, twin.size)
                elif what == "reweight":
                    job.reweight(value % 100 + 1)
                    if twin.end is None:
                        twin.weight = value % 100 + 1
                elif job.end_ps is None and twin.end is None:
                    job.resize(value)
                    twin.size = max(value, twin.moved)

    env.lean(play())
    env.run_to()
    fluid.run_to(None)
    for number, end in ours.items():
        assert close(end, theirs[number].end)
    for job, twin in groups:
        assert close(job.end_ps, twin.end)
        assert close(job.moved_bytes, twin.moved, twin.size)
        assert close(job.capped_ps, twin.capped, twin.end)
    # bytes in = bytes out, also those of cut and resized jobs
    assert channel.use.amount == channel.entered_bytes
    assert channel.jobs == 0


def test_many_jobs_for_long():
    """20,000 jobs at 90 % load that never leaves the channel empty for long."""
    env = Environment()
    channel = Channel(env, "hbm", capacity_bytes_per_s=CAPACITY * 1e12)
    member = channel.job_class(None)
    fluid = Fluid(lambda jobs: [CAPACITY / len(jobs)] * len(jobs))
    ends, twins = [], []
    state = 12345

    def play():
        nonlocal state
        for _ in range(20_000):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            yield (state >> 33) % 91_022  # 45,511 on average: 90 % of the mean job's 40,960
            fluid.run_to(env.now)
            size = (state >> 40) % 131_072
            twins.append(fluid.enter(Job(size, {})))
            number = len(ends)
            ends.append(None)

            def done(number=number):
                ends[number] = env.now

            member.enter(size, done)

    env.lean(play())
    env.run_to()
    fluid.run_to(None)
    worst = max(abs(end - twin.end) / twin.end for end, twin in zip(ends, twins, strict=True))
    assert worst <= 1e-9
    assert channel.use.amount == channel.entered_bytes == sum(twin.size for twin in twins)
