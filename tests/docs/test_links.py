"""The README, which no documentation build reads, points to files that are there."""

import re

LINK = re.compile(r"\]\(([^)#\s]+)")


def test_the_links_of_the_readme_point_to_files(repository):
    links = LINK.findall((repository / "README.md").read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert local
    assert [link for link in local if not (repository / link).is_file()] == []
