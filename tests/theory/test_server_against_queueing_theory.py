"""Mean waits of first-come-first-served servers: theory lies within the 99.9 % interval of 30 batch means.

Seeds are fixed, so a test fails always or never; the interval is asked to be narrow, so that passing means
something.
"""

import numpy as np
import pytest

from gpusim.engine.environment import Environment
from gpusim.engine.server import Server
from tests.theory.oracles import confidence, erlang_c

MEAN_SERVICE_PS = 1_000_000
CUSTOMERS = 150_000
WARM_UP = 6_000


def waits(services, lanes, load, seed):
    """Waiting times of Poisson arrivals that offer `load` erlangs per lane."""
    server = Server(Environment(), "server", lanes=lanes)
    gaps = np.random.default_rng(seed).exponential(MEAN_SERVICE_PS / (load * lanes), len(services))
    arrivals = np.cumsum(gaps).astype(np.int64).tolist()
    return [
        server.reserve(service, at)[0] - at for service, at in zip(services.tolist(), arrivals, strict=True)
    ][WARM_UP:]


def exponential(seed):
    return np.random.default_rng(seed).exponential(MEAN_SERVICE_PS, CUSTOMERS).astype(np.int64)


def agree(samples, theory, within):
    mean, half = confidence(samples)
    assert abs(mean - theory) <= half
    assert half <= within * theory


@pytest.mark.parametrize(("load", "within"), [(0.5, 0.08), (0.8, 0.2)])
def test_mm1_waits_rho_over_one_minus_rho_services(load, within):
    samples = waits(exponential(11), 1, load, 12)
    agree(samples, MEAN_SERVICE_PS * load / (1 - load), within)


def test_md1_waits_half_of_mm1():
    services = np.full(CUSTOMERS, MEAN_SERVICE_PS)
    samples = waits(services, 1, 0.8, 22)
    agree(samples, MEAN_SERVICE_PS * 0.8 / (1 - 0.8) / 2, 0.15)


def test_mmc_waits_as_erlang_says():
    lanes, load = 4, 0.8
    samples = waits(exponential(31), lanes, load, 32)
    agree(samples, MEAN_SERVICE_PS * erlang_c(lanes, lanes * load) / (lanes * (1 - load)), 0.25)


def test_a_server_is_busy_for_the_services_and_nothing_else():
    env = Environment()
    server = Server(env, "server", lanes=3)
    services = [5_000_000, 0, 7, 123_456_789]
    end = max(server.reserve(service)[1] for service in services)
    assert server.use.busy_ps == sum(services)
    assert server.use.amount == server.served == 4
    assert server.use.busy_fraction(end, lanes=3) == pytest.approx(sum(services) / (3 * end))
