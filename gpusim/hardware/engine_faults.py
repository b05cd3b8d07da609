"""Retry faults of a copy engine or of the command processor: one access at a time, which waits for its page.

Their UTCL1s send an access again as those of compute units do (XNACK_REDO_TIMER_CNT of CPC, CPF and CPG, the UTCL1
time-out of SDMA; `kfd_svm.md` 1.6), so their vectors meet those of kernels in the same CAM and ring. Left out: that the
periods differ, which are not published.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpusim.engine.record import NO_ROW, Chain, Snapshot
from gpusim.engine.stages import Stages, Transfer
from gpusim.hardware.access import Client
from gpusim.hardware.gpu import Gpu
from gpusim.hardware.gpuvm import INVALID, Region, Waiter
from gpusim.hardware.retry import Sender, first_send_after, sends_until
from gpusim.kinds import Kind


class EngineFault(Sender):
    """One access of `client` that found no PTE for `page` of `region`; `chain` is the path of who waits for it."""

    __slots__ = (
        "_chain",
        "_client",
        "_done",
        "_gpu",
        "_mapped_ps",
        "_released",
    )

    def __init__(
        self,
        gpu: Gpu,
        region: Region,
        page: int,
        *,
        write: bool,
        client: Client,
        chain: Chain,
        done: Callable[[], None],
    ) -> None:
        self._gpu = gpu
        self._chain = chain
        self._done = done
        self._mapped_ps = 0
        self._released: Snapshot = chain.snapshot()
        self.region = region
        self.page = page
        self.write = write
        self._client = client
        self.behind = NO_ROW
        self.sent_ps = 0
        self.tick_ps = 0

    @property
    def client(self) -> Client:
        return self._client

    def send(self) -> None:
        """The access is sent for the first time."""
        self._gpu.retry.fault(self)

    def path(self) -> Snapshot:
        """The critical path that led to it."""
        return self._chain.snapshot()

    def stopped(self, now_ps: int) -> None:
        """The queues of its process are evicted: it waits without sending."""
        self.sent_ps = now_ps
        self.tick_ps = -1

    def sends_pending(self, now_ps: int) -> int:
        """Sends so far."""
        return 0 if self.tick_ps < 0 else sends_until(now_ps, self.tick_ps, self._gpu.retry.period_ps)

    @staticmethod
    def valid_together(waiters: Sequence[Waiter], time_ps: int, last: int) -> None:
        """`valid_at` of all, whatever they are."""
        for waiter in waiters:
            waiter.valid_at(time_ps)

    def valid_at(self, time_ps: int) -> None:
        """The page is there from `time_ps` on: the next send finds it."""
        gpu = self._gpu
        resume = time_ps
        if self.tick_ps >= 0:
            gpu.retry.counters_of(self.region.vm).sends += sends_until(
                time_ps, self.tick_ps, gpu.retry.period_ps
            )
            resume = first_send_after(time_ps, self.tick_ps, gpu.retry.period_ps)
        self._released = gpu.releasing
        self._mapped_ps = time_ps
        gpu.env.call_at(resume, self._resent)

    def _resent(self) -> None:
        if self.region.vm.dead:
            return
        self._chain.released(Kind.FAULT_QUEUE, self._released, self._mapped_ps)
        self._chain.spend(Kind.RESEND, self._gpu.env.now)
        if self.region.seen(self.write)[self.page] == INVALID:
            self.send()  # it has gone again
        else:
            self.region.vm.engine_accesses += 1
            self._done()


def fault_in(
    gpu: Gpu, chain: Chain, region: Region, first: int, last: int, *, write: bool, client: Client
) -> Stages:
    """An engine walks pages first..last of a region, and waits for each that it does not find."""
    page = region.seen(write).find(INVALID, first, last + 1)
    while page >= 0 and not region.vm.dead:
        yield Transfer(Kind.FAULT_QUEUE, _starter(gpu, chain, region, page, write=write, client=client))
        page = region.seen(write).find(INVALID, page + 1, last + 1)


def _starter(
    gpu: Gpu, chain: Chain, region: Region, page: int, *, write: bool, client: Client
) -> Callable[[Callable[[], None]], None]:
    def start(done: Callable[[], None]) -> None:
        if region.vm.dead or region.seen(write)[page] != INVALID:  # others have mapped it meanwhile
            done()
            return
        EngineFault(gpu, region, page, write=write, client=client, chain=chain, done=done).send()

    return start
