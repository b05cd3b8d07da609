"""Runs that do not depend on each other, on local worker processes or here.

Which worker takes which task, and in which order they finish, is left to chance: whoever uses this must not let the
answer depend on it.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from gpusim.errors import GpusimError, InputError

if TYPE_CHECKING:
    from gpusim.scenario.schema import Scenario

TaskT = TypeVar("TaskT")
MadeT = TypeVar("MadeT")
Work = Callable[["Scenario", TaskT], MadeT]

_AHEAD = 4  # tasks handed to the pool per worker: enough to keep it busy, few enough to stop soon


def cores() -> int:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this platform
        return os.cpu_count() or 1


class Workers(Generic[TaskT, MadeT]):
    """`work(base, task)` for many tasks. More than one worker means processes of the `spawn` method.

    `work` is a function of a module; `str(task)` says in messages which one failed, `of` of what. Processes are
    started with the first tasks, and end with the `with` block; after an error or Ctrl-C at once.
    """

    def __init__(self, work: Work[TaskT, MadeT], base: Scenario, count: int, *, of: str) -> None:
        self._work = work
        self._base = base
        self._count = count
        self._of = of
        self._pool: ProcessPoolExecutor | None = None
        self._before: set[Any] = set()

    def __enter__(self) -> Workers[TaskT, MadeT]:
        return self

    def each(self, tasks: Iterable[TaskT]) -> Iterator[tuple[TaskT, MadeT]]:
        """Every task with what came of it, as they finish. Raises what one of them raises, with its name."""
        if self._count <= 1:
            for task in tasks:
                with Named(task, self._of):
                    made = self._work(self._base, task)
                yield task, made
            return
        yield from self._together(tasks)

    def _together(self, tasks: Iterable[TaskT]) -> Iterator[tuple[TaskT, MadeT]]:
        pool = self._started()
        waiting = iter(tasks)
        running: dict[Future[MadeT], TaskT] = {}
        while True:
            for task in itertools.islice(waiting, self._count * _AHEAD - len(running)):
                with _uninterrupted():
                    running[pool.submit(_in_worker, task)] = task
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                task = running.pop(future)
                with Named(task, self._of):
                    made = future.result()
                yield task, made

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._before = set(multiprocessing.active_children())
            self._pool = ProcessPoolExecutor(
                self._count,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_start_worker,
                initargs=(self._work, self._base),
            )
        return self._pool

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is None:
            return
        self._pool.shutdown(wait=error is None, cancel_futures=True)
        if error is not None:  # what still runs is of no use
            for child in set(multiprocessing.active_children()) - self._before:
                child.terminate()
                child.join()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits until the block has ended; a process that is started in it never gets one, not even while it starts.

    Ctrl-C is for the parent, which ends its workers.
    """
    if not hasattr(signal, "pthread_sigmask"):  # not on this platform
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_at_work: tuple[Work[Any, Any], Scenario] | None = None  # of a worker process, set once at its start


def _start_worker(work: Work[Any, Any], base: Scenario) -> None:
    global _at_work  # noqa: PLW0603 - the state of a worker process, not of the package
    _at_work = work, base
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _in_worker(task: Any) -> Any:
    assert _at_work is not None
    work, base = _at_work
    return work(base, task)


class Named:
    """Says at which task an error came up."""

    def __init__(self, task: object, of: str) -> None:
        self._task = task
        self._of = of

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, BrokenProcessPool):
            raise GpusimError(
                "a worker process was ended from outside, most likely for want of memory: use fewer --workers"
            ) from None
        if isinstance(error, InputError):
            raise InputError(
                [
                    replace(problem, message=f"{problem.message} (at {self._task})")
                    for problem in error.problems
                ]
            ) from None
        if error is not None and isinstance(error, Exception):
            error.add_note(f"at the point {self._task} of {self._of}")
