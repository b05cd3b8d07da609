"""YAML is read safely: the core schema of 1.2, no tags, limits before they hurt, places for messages."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusim.errors import InputError
from gpusim.scenario import yaml_nodes
from gpusim.scenario.yaml_nodes import compose, read_text
from gpusim.scenario.yaml_tree import locate


def plain(text: str) -> object:
    root, problems = compose(text)
    assert problems == []
    return root.plain()


def refusal(text: str) -> str:
    with pytest.raises(InputError) as error:
        compose(text, "file.yaml")
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("No", "No"),
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("''", ""),
        ("12", 12),
        ("010", 10),
        ("0o17", 15),
        ("0x1F", 31),
        ("1e3", 1000.0),
        ("-.5", -0.5),
        ("+1.5E-3", 0.0015),
        (".inf", float("inf")),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("2001-12-14", "2001-12-14"),
        ("'12'", "12"),
        ('"true"', "true"),
        ("0.5.0", "0.5.0"),
        ("20%", "20%"),
        ("=", "="),
    ],
)
def test_scalars_follow_the_core_schema_of_yaml_1_2(text: str, value: object) -> None:
    assert plain(f"key: {text}") == {"key": value}


def test_places_are_known_for_values_and_keys() -> None:
    root, _ = compose("a: 1\nlist:\n  - x\n  - {b: 2}\n")
    assert locate(root, ("list", 1, "b")) == (4, 9)
    assert locate(root, ("list", 1, "b"), key=True) == (4, 6)
    assert locate(root, ("list", 7, "c")) == (2, 1)  # the nearest thing that is there


def test_aliases_are_copies() -> None:
    tree = plain("a: &x {n: [1]}\nb: *x\n")
    assert isinstance(tree, dict)
    tree["a"]["n"].append(2)
    assert tree["b"] == {"n": [1]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty (legal: a scenario; `gpusim init` writes one to start from)"),
        ("# only a comment\n", "is empty"),
        ("a: [1, 2\nb: 3", "file.yaml:2:2: bad YAML while parsing a flow sequence"),
        ("a:\n\tb: 1", "file.yaml:2:1: bad YAML"),
        ("a: b: c", "file.yaml:1:5: bad YAML: mapping values are not allowed"),
        ('a: "never closed', "a quote is not closed"),
        ("a: 1\n---\nb: 2", "file.yaml:2:1: a second YAML document begins here"),
        ("a: *nowhere", "file.yaml:1:4: the alias *nowhere names no anchor &nowhere above it"),
        ("a: &x [*x]", "file.yaml:1:8: the alias *x is inside what it names"),
        ("? [a, b]\n: c", "a key is text, not a list or mapping"),
        ("a: &x b\n*x : c", "an alias cannot be a key"),
        ("a: \x07", "file.yaml:1:4: holds the unprintable character '\\x07'"),
        ("a: \ud800", "unprintable"),
        ("[" * 5000, "nest"),
        ("- " * 5000, "nest"),
        ("{a: " * 100 + "1" + "}" * 100, "nested more than 64 levels deep"),
        ("a: 1\n" + "x" * (11 * 2**20), "larger than 10 MiB"),
    ],
)
def test_text_that_cannot_be_a_scenario_is_refused_with_its_place(text: str, said: str) -> None:
    assert said in refusal(text)


def test_several_mistakes_are_told_at_once() -> None:
    _, problems = compose("a: 1\na: 2\nb: !!python/object:os.system {}\n<<: {c: 1}\ntrue: 3\n", "file.yaml")
    told = [str(problem) for problem in problems]
    assert told[0].startswith("file.yaml:2:1: the key 'a' is here twice (first in line 1)")
    assert told[1].startswith("file.yaml:3:4: YAML tags are not allowed")
    assert told[2].startswith("file.yaml:4:1: merge keys (<<) are not part of YAML 1.2")
    assert told[3].startswith("file.yaml:5:1: a key is text, but 'true' reads as a boolean; quote it")


def test_a_billion_laughs_are_refused_at_once() -> None:
    lines = ["a: &a [" + ", ".join(["ha"] * 9) + "]"]
    for above, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} [" + ", ".join([f"*{above}"] * 9) + "]")
    before = time.perf_counter()
    message = refusal("\n".join(lines))
    assert time.perf_counter() - before < 0.5
    assert "aliases stand for more than 100,000 values" in message


def test_aliases_cannot_hide_depth() -> None:
    lines = ["a: &a0 [1]"] + [f"k{i}: &a{i + 1} [[[[*a{i}]]]]" for i in range(40)]
    assert "levels deep" in refusal("\n".join(lines))


def test_the_number_of_values_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_nodes, "MAX_NODES", 100)
    assert "holds more than 100 values" in refusal("[" + "1," * 200 + "]")


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    binary, latin, endless = tmp_path / "a.yaml", tmp_path / "b.yaml", Path("/dev/zero")
    binary.write_bytes(b"\x7fELF\x02\x01\0\0\xff\xfe")
    latin.write_bytes(b"name: x\nquestion: caf\xe9\n")
    for path, said in [
        (tmp_path / "nothing.yaml", "no such file"),
        (tmp_path, "this is a directory"),
        (binary, "is a binary file"),
        (latin, "b.yaml:2:14: is not UTF-8 text: byte 0xe9"),
        (endless, "larger than 10 MiB"),
        (tmp_path / ("x" * 5000), "cannot be read"),
        (Path("a\0b"), "cannot be read"),
        (latin / "below.yaml", "cannot be read"),
    ]:
        with pytest.raises(InputError) as error:
            read_text(path)
        assert said in str(error.value)


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    file = tmp_path / "bom.yaml"
    file.write_bytes(b"\xef\xbb\xbfname: x\n")
    assert plain(read_text(file)) == {"name": "x"}


@given(st.text(max_size=200))
def test_any_text_is_a_tree_or_a_refusal(text: str) -> None:
    try:
        root, _ = compose(text)
    except InputError:
        return
    root.plain()


@given(
    st.recursive(
        st.one_of(
            st.none(), st.booleans(), st.integers(-(10**6), 10**6), st.text("ab01:{}[] #&*!?-", max_size=8)
        ),
        lambda inner: st.one_of(
            st.lists(inner, max_size=4), st.dictionaries(st.text("abc", min_size=1), inner, max_size=4)
        ),
        max_leaves=20,
    )
)
def test_what_is_written_is_read_back(tree: object) -> None:
    import yaml

    from gpusim.scenario.export import _Dumper

    assert compose(yaml.dump({"tree": tree}, Dumper=_Dumper))[0].plain() == {"tree": tree}
