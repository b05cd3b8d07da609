"""Rates of the network against progressive filling, flow by flow in exact fractions, on random topologies."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gpusim.engine.environment import Environment
from gpusim.engine.flows import Network
from tests.theory.oracles import Fluid, Job, coupled, filled

LINKS = 5
# links 0 and 1, and 2 and 3, are directions of one link when they are coupled
REVERSE = {0: 1, 1: 0, 2: 3, 3: 2}

capacities = st.lists(st.sampled_from([0.016, 0.025, 0.032, 0.0554, 0.4]), min_size=LINKS, max_size=LINKS)
paths = st.dictionaries(
    st.integers(0, LINKS - 1), st.sampled_from([1.0, 1.0, 1.1236, 1.5]), min_size=1, max_size=3
)
flows = st.lists(
    st.tuples(
        paths,
        st.sampled_from([1.0, 1.0, 2.0, 0.5, 7.25, 64.0]),
        st.sampled_from([None, None, 0.001, 0.007, 0.03, 1.0]),
    ),
    min_size=1,
    max_size=8,
)
couplings = st.sampled_from([0.0, 0.096, 0.19, 0.5])


def build(capacities, coupling):
    """A network, with both directions of a coupled link at the same capacity."""
    capacities = list(capacities)
    if coupling:
        capacities[1], capacities[3] = capacities[0], capacities[2]
    network = Network(Environment())
    for link, capacity in enumerate(capacities):
        reverse = REVERSE.get(link) if coupling else None
        network.add_link(
            str(link),
            capacity_bytes_per_s=capacity * 1e12,
            reverse=None if reverse is None else str(reverse),
            coupling=coupling if reverse is not None else 0.0,
        )
    return network, dict(enumerate(capacities))


def start(network, path, weight, cap, size=10**9, done=None):
    hops = [(str(link), cost) for link, cost in path.items()]
    return network.transfer(
        hops, size, weight=weight, cap_bytes_per_s=None if cap is None else cap * 1e12, done=done
    )


def job(path, weight, cap, size=10**9):
    return Job(size, path, weight, float("inf") if cap is None else cap)


def close(ours, theirs, tolerance=1e-9):
    return abs(ours - theirs) <= tolerance * abs(theirs)


@given(capacities, flows)
def test_rates_are_max_min_fair(capacities, flows):
    network, capacity = build(capacities, 0.0)
    ours = [start(network, *flow) for flow in flows]
    theirs = filled([job(*flow) for flow in flows], capacity)
    for flow, rate in zip(ours, theirs, strict=True):
        assert close(flow.rate_bytes_per_s / 1e12, float(rate))


@given(capacities, flows, couplings)
def test_coupled_rates_are_fair_for_what_they_leave_each_other(capacities, flows, coupling):
    """The fixed point: filling what the reverse directions leave gives the same rates back."""
    network, capacity = build(capacities, coupling)
    ours = [start(network, *flow) for flow in flows]
    rates = [flow.rate_bytes_per_s / 1e12 for flow in ours]
    jobs = [job(*flow) for flow in flows]
    use = {
        link: sum(each.path.get(link, 0) * rate for each, rate in zip(jobs, rates, strict=True))
        for link in capacity
    }
    room = {
        link: full - (coupling * use[REVERSE[link]] if link in REVERSE else 0)
        for link, full in capacity.items()
    }
    for link, left in room.items():
        assert use[link] <= left * (1 + 1e-12)
    for rate, theirs in zip(rates, filled(jobs, room), strict=True):
        assert close(rate, float(theirs))


script = st.lists(
    st.tuples(
        st.one_of(st.just(0), st.integers(0, 10**8)),
        st.sampled_from(["start", "start", "start", "cut", "resize", "reweight"]),
        paths,
        st.sampled_from([1.0, 2.0, 0.5, 64.0]),
        st.sampled_from([None, None, 0.001, 0.03]),
        st.one_of(st.integers(0, 10), st.integers(0, 10**7)),
    ),
    min_size=1,
    max_size=14,
)


@settings(max_examples=120)
@given(capacities, script, couplings)
def test_flows_end_when_a_fluid_says_and_every_byte_is_accounted_for(capacities, script, coupling):
    network, capacity = build(capacities, coupling)
    env = network.env
    reverses = {link: (other, coupling) for link, other in REVERSE.items()} if coupling else {}
    fluid = Fluid(lambda jobs: coupled(jobs, capacity, reverses))
    flows, twins, told = [], [], []

    def play():
        for gap, what, path, weight, cap, size in script:
            yield gap
            fluid.run_to(env.now)
            if what == "start" or not flows:
                flows.append(start(network, path, weight, cap, size, told.append))
                twins.append(fluid.enter(job(path, weight, cap, size)))
                continue
            flow, twin = flows[size % len(flows)], twins[size % len(flows)]
            if what == "cut":
                flow.cut()
                fluid.cut(twin)
            elif flow.end_ps is None and twin.end is None:
                if what == "resize":
                    flow.resize(size)
                    twin.size = max(size, twin.moved)
                else:
                    flow.reweight(weight)
                    twin.weight = weight

    env.lean(play())
    env.run_to()
    fluid.run_to(None)
    for flow, twin in zip(flows, twins, strict=True):
        assert abs(flow.end_ps - twin.end) <= 2 + 1e-9 * twin.end
        assert abs(flow.moved_bytes - twin.moved) <= 1 + 1e-9 * twin.size
        assert abs(flow.capped_ps - twin.capped) <= 3 + 1e-9 * twin.end
        assert flow.end_ps - flow.start_ps >= flow.alone_ps - 2 or flow.moved_bytes < flow.size_bytes
    for link in capacity:
        carried = sum(flow.moved_bytes for flow, twin in zip(flows, twins, strict=True) if link in twin.path)
        assert network.use(str(link)).amount == network.link(str(link)).entered_bytes == carried
        assert sum(amount for _, _, amount in network.use(str(link)).rows()) == carried
    assert network.components == 0
