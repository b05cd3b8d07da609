"""Where a worker's vectors come from: a soft ring that the interrupt handler fills, or ring 1 and the filter."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from gpusim.driver.interrupt_spec import InterruptSpec
from gpusim.driver.retry_filter import RetryFilter, Verdict
from gpusim.hardware.interrupt import Vector, VectorRing
from gpusim.hardware.senders import Senders


class SoftRing:
    """ih_soft: the handler copies vectors in; a place is free again as soon as its vector is decoded.

    One place of the ring always stays empty, and a vector that finds it full is lost.
    """

    decode_ps = 0  # paid by the interrupt handler

    def __init__(self, capacity: int, freed: Callable[[], None]) -> None:
        self.ring = VectorRing(capacity - 1)
        self._freed = freed

    def next_ps(self, now: int) -> int | None:
        return now if len(self.ring) else None

    def take(self, now: int) -> list[Vector]:
        taken = self.ring.take(1)
        self._freed()
        return taken

    def drops(self, vector: Vector) -> bool:
        return False

    def passed(self) -> None: ...

    def settle(self, now: int) -> None: ...

    def waiting(self) -> list[Vector]:
        return list(self.ring)

    def remove(self, vectors: list[Vector]) -> None:
        self.ring.remove([vector for vector in vectors if vector in set(self.ring)])
        self._freed()


class FilteredRing:
    """Ring 1 without a CAM: each waiting access sends once a period, and what finds the ring full is lost.

    Sends are looked at only when the worker reads the ring, and only those that got in.
    """

    def __init__(
        self,
        spec: InterruptSpec,
        *,
        period_ps: int,
        delivery_ps: int,
        dropped: Callable[[Vector, Verdict], None],
        admitted: Callable[[Vector], None],
    ) -> None:
        self.ring = VectorRing(spec.ring1 - 1)
        self.filter = RetryFilter(spec.filter_entries, spec.filter_window_ps)
        self.decode_ps = spec.vector
        self._per_pass = spec.per_pass
        self._delivery = delivery_ps
        self._senders = Senders(period_ps)
        self._firsts: deque[Vector] = deque()
        self._seen_ps = 0  # sends up to here have been looked at
        self._dropped = dropped
        self._admitted = admitted

    def offer(self, vector: Vector) -> None:
        """A wavefront sends an access for the first time, now."""
        self._firsts.append(vector)  # it joins those who send again once its first send has been looked at

    def next_ps(self, now: int) -> int | None:
        self._admit(now)
        if len(self.ring):
            return now
        due = self._senders.next_after(self._seen_ps)
        sent = due[0] if due is not None else None
        if self._firsts and (sent is None or self._firsts[0].sent_ps < sent):
            sent = self._firsts[0].sent_ps
        return None if sent is None else max(now, sent + self._delivery)

    def take(self, now: int) -> list[Vector]:
        self._admit(now)
        return self.ring.take(self._per_pass, hold=True)

    def settle(self, now: int) -> None:
        """Look at the sends up to now: those on their way to the ring come to it as well."""
        self._admit(now + self._delivery)

    def _admit(self, now: int) -> None:
        """Sends that have reached the ring by now, as long as it has room; the others are lost."""
        until = now - self._delivery
        firsts, senders = self._firsts, self._senders
        while self.ring.room > 0:
            due = senders.next_after(self._seen_ps)
            if firsts and (due is None or firsts[0].sent_ps <= due[0]):
                if firsts[0].sent_ps > until:
                    break
                vector = firsts.popleft()
                sent = vector.sent_ps
                if not vector.waits:
                    continue
                self._seen_ps = max(self._seen_ps, sent)
                senders.add(vector)
            elif due is not None and due[0] <= until:
                sent, vector = due[0], due[1]
                self._seen_ps = sent
            else:
                break
            entry = vector.copy(sent + self._delivery)
            self._admitted(entry)
            self.ring.push(entry)
        if self.ring.room <= 0:
            while firsts and firsts[0].sent_ps <= until:
                senders.add(firsts.popleft())
        self._seen_ps = max(self._seen_ps, until)

    def drops(self, vector: Vector) -> bool:
        verdict = self.filter.verdict(vector.key, vector.time_ps)
        if verdict is Verdict.PASSES:
            return False
        self._dropped(vector, verdict)
        return True

    def passed(self) -> None:
        self.ring.release()

    def again(self, vector: Vector) -> None:
        """The driver could not serve it now: its next send is to pass the filter."""
        newest = self.ring.newest()
        self.filter.remove(vector.key, vector.time_ps if newest is None else newest.time_ps)

    def forget_mapped(self) -> None:
        """Pages have become valid: their waiters send no more."""
        self._senders.purge()

    def waiting(self) -> list[Vector]:
        return list(self.ring)

    def remove(self, vectors: list[Vector]) -> None:
        self.ring.remove([vector for vector in vectors if vector in set(self.ring)])
