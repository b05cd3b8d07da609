"""The page of the driver's switches names every one of them, with all of its values, and every preset."""

from pathlib import Path

from gpusim.driver.switches import PRESETS, SUPPORTED

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "driver-switches.md").read_text(encoding="utf-8")


def test_every_switch_and_value_is_explained():
    missing = [
        f"{switch}: {value}"
        for switch, values in SUPPORTED.items()
        for value in values
        if f"`{switch}`" not in PAGE or f"`{value}`" not in PAGE
    ]
    assert missing == []


def test_every_preset_is_named():
    assert [preset for preset in PRESETS if f"`{preset}`" not in PAGE] == []
