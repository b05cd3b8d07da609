"""What hipFile reads from the environment, by its own rules of parsing (`hipfile.md` 1.5)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from gpusim.quantity import MIB
from gpusim.runtime.hipfile.version import REVISIONS, HipFileVersion, HipSymbol, Revision

FORCE = "HIPFILE_FORCE_COMPAT_MODE"
ALLOW = "HIPFILE_ALLOW_COMPAT_MODE"
UNSUPPORTED = "HIPFILE_UNSUPPORTED_FILE_SYSTEMS"
STATS_LEVEL = "HIPFILE_STATS_LEVEL"
ASYNC_BUFFER = "HIPFILE_ASYNC_BUFFER_SIZE"

_ASYNC_BUFFER_BYTES = 16 * MIB
_MOST_STATS = 3
_LARGEST = 2**64 - 1


def boolean(env: Mapping[str, str], name: str) -> bool | None:
    """true or false in any case; all else, also `1` or an empty text, is as if it were not set."""
    return {"true": True, "false": False}.get(env.get(name, "").lower())


def unsigned(env: Mapping[str, str], name: str) -> int | None:
    """An unsigned decimal; text before or behind it makes it as if it were not set."""
    text = env.get(name, "")
    if not (text.isascii() and text.isdigit()) or int(text) > _LARGEST:
        return None
    return int(text)


@dataclass(frozen=True, slots=True)
class Configuration:
    """Read once, at the first use, and kept for the life of the process."""

    revision: Revision
    fastpath: bool  # the fast path is switched on, and HIP has both of its entry points
    missing: tuple[HipSymbol, ...]  # entry points that HIP lacks
    fallback: bool  # the fallback is switched on, for first choice and for retries
    any_file_system: bool  # regular files are not asked for their file system
    stats_level: int
    async_buffer: int  # bytes of a stream's bounce buffer

    @classmethod
    def read(
        cls, env: Mapping[str, str], version: HipFileVersion, missing: Collection[HipSymbol] = ()
    ) -> Configuration:
        """What a process with this environment gets."""
        revision = REVISIONS[version]
        forced = boolean(env, FORCE) is True
        fallback = boolean(env, ALLOW) is not False
        if forced and not fallback:
            fallback = revision.fallback_when_forced
        level = unsigned(env, STATS_LEVEL)
        return cls(
            revision=revision,
            fastpath=not missing and not forced,
            missing=tuple(sorted(missing)),
            fallback=fallback,
            any_file_system=boolean(env, UNSUPPORTED) is True,
            stats_level=min(revision.stats_level if level is None else level, _MOST_STATS),
            async_buffer=unsigned(env, ASYNC_BUFFER) or _ASYNC_BUFFER_BYTES,
        )
