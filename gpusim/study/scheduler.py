"""The same as `workers`, on the machines of a Dask cluster.

The cluster's workers need the same version of gpusim. What they compute is the same as here, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic

from gpusim.errors import InputError, Problem
from gpusim.study.workers import MadeT, Named, TaskT, Work
from gpusim.version import version

if TYPE_CHECKING:
    from gpusim.scenario.schema import Scenario

_PATIENCE = "10s"


class Scheduler(Generic[TaskT, MadeT]):
    """`work(base, task)` for many tasks, by the workers of the scheduler at an address (`tcp://host:8786`).

    Raises InputError where the extra is missing, nobody answers, there are no workers, or they have another gpusim.
    """

    def __init__(self, work: Work[TaskT, MadeT], base: Scenario, address: str, *, of: str) -> None:
        self._work = work
        self._base = base
        self._address = address
        self._of = of
        self._client: Any = None

    def __enter__(self) -> Scheduler[TaskT, MadeT]:
        tool = _distributed()
        try:
            self._client = tool.Client(self._address, timeout=_PATIENCE, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            words = f"{type(error).__name__}: {error}".splitlines()[0]
            raise self._refused("no Dask scheduler answers there", words, "e.g. tcp://host:8786") from None
        try:
            self._check(self._client)
        except BaseException:
            self._client.close()
            raise
        return self

    def _check(self, client: Any) -> None:
        """Every worker has to be of our version."""
        if not client.scheduler_info(n_workers=-1)["workers"]:
            raise self._refused("the Dask scheduler has no workers", None, "start some: dask worker ADDRESS")
        try:
            theirs = set(client.run(version).values())
        except (ImportError, AttributeError) as error:
            raise self._refused(
                "its workers cannot import gpusim", str(error), f"gpusim {version()}"
            ) from None
        if theirs != {version()}:
            others = ", ".join(sorted(map(str, theirs)))
            raise self._refused("its workers have another version of gpusim", others, f"gpusim {version()}")

    def each(self, tasks: Iterable[TaskT]) -> Iterator[tuple[TaskT, MadeT]]:
        """Every task with what came of it, as they finish. Raises what one of them raises, with its name."""
        tool = _distributed()
        base = self._client.scatter(self._base, broadcast=True, hash=False)
        running = {self._client.submit(self._work, base, task, pure=False): task for task in tasks}
        for future in tool.as_completed(list(running), loop=self._client.loop):
            task = running.pop(future)
            with Named(task, self._of):
                made: MadeT = future.result()
            yield task, made

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()  # what has not been run yet is nobody's any more, and the scheduler drops it

    def _refused(self, why: str, read: str | None, legal: str) -> InputError:
        return InputError([Problem(f"--scheduler {self._address}: {why}", read=read, legal=legal)])


def _distributed() -> Any:
    """The package, which is an extra."""
    try:
        import distributed
    except ImportError:
        legal = "pip install 'gpusim[distributed]'"
        message = "--scheduler needs the package distributed, which is not installed"
        raise InputError([Problem(message, legal=legal)]) from None
    return distributed
