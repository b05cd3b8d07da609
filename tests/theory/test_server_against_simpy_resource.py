"""Event by event: the arithmetic server and the callback mutex against SimPy's `Resource`, for the same
customers.
"""

import simpy
from hypothesis import given
from hypothesis import strategies as st

from gpusim.engine.environment import Environment
from gpusim.engine.mutex import Mutex
from gpusim.engine.server import Server

# few distinct gaps and services, so that ties are common
customers = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), max_size=40)


def by_resource(customers, lanes):
    """(start, end) of each customer, by a process and a request each."""
    env = simpy.Environment()
    resource = simpy.Resource(env, capacity=lanes)
    times = [None] * len(customers)

    def customer(number, service):
        with resource.request() as turn:
            yield turn
            start = env.now
            yield env.timeout(service)
            times[number] = (start, env.now)

    def arrivals():
        for number, (gap, service) in enumerate(customers):
            yield env.timeout(gap)
            env.process(customer(number, service))

    env.process(arrivals())
    env.run()
    return times


def feed(env, customers, arrive):
    def arrivals():
        for number, (gap, service) in enumerate(customers):
            yield gap
            arrive(number, service)

    env.lean(arrivals())
    env.run_to()


@given(customers, st.integers(1, 4))
def test_reservations_start_and_end_as_requests_do(customers, lanes):
    env = Environment()
    server = Server(env, "server", lanes=lanes)
    times = []
    feed(env, customers, lambda _number, service: times.append(server.reserve(service)))
    assert times == by_resource(customers, lanes)


@given(customers)
def test_a_mutex_is_held_as_a_resource_is(customers):
    env = Environment()
    mutex = Mutex(env, "lock")
    times = [None] * len(customers)

    def arrive(number, service):
        def granted():
            start = env.now

            def leave():
                times[number] = (start, env.now)
                mutex.release()

            env.call_at(start + service, leave)

        mutex.acquire(number + 1, granted)

    feed(env, customers, arrive)
    assert times == by_resource(customers, 1)
    assert mutex.holder is None
    assert mutex.use.busy_ps == sum(service for _, service in customers)
