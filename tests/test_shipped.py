"""The data that ships with the package is found where this copy of gpusim keeps it."""

from gpusim import shipped


def test_the_profiles_are_found():
    kinds = {profile.parent.name for profile in shipped.profiles_dir().glob("*/*.yaml")}
    assert kinds >= {"gpus", "nodes", "cpus", "drivers"}


def test_the_validation_scenarios_are_found():
    assert list(shipped.validation_dir().glob("*.yaml"))


def test_an_installed_package_finds_its_own_copy_first(tmp_path, monkeypatch):
    copy = tmp_path / "gpusim" / "scenarios" / "validation"
    copy.mkdir(parents=True)
    monkeypatch.setattr(shipped, "_PACKAGE", tmp_path / "gpusim")
    assert shipped.validation_dir() == copy
