"""Environment variables, by the library's own parsing; and what registration finds out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpusim.errors import CallError
from gpusim.quantity import MIB
from gpusim.runtime.hipfile.config import Configuration
from gpusim.runtime.hipfile.registration import BufferRecord, MemoryType, look_up, register_file
from gpusim.runtime.hipfile.version import HipFileVersion, HipSymbol

OLD, MIDDLE, NEW = HipFileVersion


def read(version: HipFileVersion = OLD, *missing: HipSymbol, **env: str) -> Configuration:
    return Configuration.read({f"HIPFILE_{key}": value for key, value in env.items()}, version, missing)


@pytest.mark.parametrize("word", ["true", "TRUE", "tRuE"])
def test_true_in_any_case_forces_the_fallback(word: str) -> None:
    assert not read(FORCE_COMPAT_MODE=word).fastpath


@pytest.mark.parametrize("word", ["1", "on", "yes", "", " true", "true ", "truthy"])
def test_all_other_words_are_as_if_the_variable_were_not_set(word: str) -> None:
    config = read(FORCE_COMPAT_MODE=word, ALLOW_COMPAT_MODE=word, UNSUPPORTED_FILE_SYSTEMS=word)
    assert config == read()
    assert (config.fastpath, config.fallback, config.any_file_system) == (True, True, False)


@pytest.mark.parametrize("symbol", list(HipSymbol))
def test_either_missing_symbol_switches_the_fast_path_off(symbol: HipSymbol) -> None:
    assert not read(OLD, symbol, FORCE_COMPAT_MODE="false").fastpath


@pytest.mark.parametrize(
    ("version", "text", "level"),
    [
        (OLD, None, 0),
        (MIDDLE, None, 1),
        (NEW, None, 1),
        (OLD, "2", 2),
        (NEW, "0", 0),
        (NEW, "99", 3),
        (NEW, "2x", 1),
        (OLD, "-1", 0),
        (OLD, "", 0),
    ],
)
def test_the_statistics_level_is_a_whole_decimal_number_up_to_three(
    version: HipFileVersion, text: str | None, level: int
) -> None:
    env = {} if text is None else {"STATS_LEVEL": text}
    assert read(version, **env).stats_level == level


@pytest.mark.parametrize(
    ("text", "size"), [("1048576", MIB), ("0", 16 * MIB), ("4k", 16 * MIB), ("9" * 30, 16 * MIB)]
)
def test_the_async_buffer_has_16_mib_unless_a_number_says_otherwise(text: str, size: int) -> None:
    assert read(MIDDLE, ASYNC_BUFFER_SIZE=text).async_buffer == size


def facts(**changes: Any) -> SimpleNamespace:
    plain = {
        "type": "regular",
        "filesystem": "ext4",
        "mount_options": None,
        "supports_o_direct": True,
        "dio_offset_align": None,
        "dio_mem_align": None,
    }
    return SimpleNamespace(**(plain | changes))


def test_alignments_are_4096_when_the_kernel_reports_none_and_0_without_o_direct() -> None:
    silent = register_file(facts())
    told = register_file(facts(dio_offset_align=512, dio_mem_align=4))
    refused = register_file(facts(supports_o_direct=False, dio_offset_align=512, dio_mem_align=4))
    assert (silent.offset_align, silent.mem_align, silent.direct) == (4096, 4096, True)
    assert (told.offset_align, told.mem_align, told.direct) == (512, 4, True)
    assert (refused.offset_align, refused.mem_align, refused.direct) == (0, 0, False)


@pytest.mark.parametrize(
    ("options", "ordered"),
    [
        (None, True),
        ("rw,relatime", True),
        ("rw,data=ordered", True),
        ("rw, data=ordered", True),
        ("data=journal", False),
        ("data=writeback", False),
        ("data=order", False),
        ("data=", False),
        ("nodata=1", True),
    ],
)
def test_ext4_is_ordered_unless_the_mount_table_says_otherwise(options: str | None, ordered: bool) -> None:
    assert register_file(facts(mount_options=options)).ordered_ext4 is ordered


@pytest.mark.parametrize(
    "filesystem", ["ext3", "ext2", "btrfs", "f2fs", "zfs", "nfs4", "beegfs", "tmpfs", "none"]
)
def test_other_file_systems_are_neither_ext4_nor_xfs(filesystem: str) -> None:
    record = register_file(facts(filesystem=filesystem, mount_options="data=ordered"))
    assert not record.ordered_ext4
    assert not record.xfs


@pytest.mark.parametrize("memory", [kind for kind in MemoryType if kind is not MemoryType.DEVICE])
def test_memory_that_is_not_a_devices_fails_before_any_score(memory: MemoryType) -> None:
    with pytest.raises(CallError, match="hipFileHipMemoryTypeInvalid"):
        look_up(BufferRecord(address=0, length=4096, memory=memory, gpu=0))
