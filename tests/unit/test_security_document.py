"""docs/SECURITY.md names every test of a pitfall, and no test that is not there."""

from __future__ import annotations

import re
from pathlib import Path

TOP = Path(__file__).parents[2]


def test_the_table_of_pitfalls_names_the_tests():
    text = (TOP / "docs/SECURITY.md").read_text()
    named = {
        int(row[1]): re.findall(r"`(test_\w+)`", row[2])
        for row in re.finditer(r"^\| (\d+) \|(.*)$", text, re.MULTILINE)
    }
    assert sorted(named) == list(range(1, 32))
    sources = "\n".join(file.read_text() for file in (TOP / "tests/attack").glob("test_*.py"))
    there = set(re.findall(r"^def (test_pitfall_\w+)\(", sources, re.MULTILINE))
    assert {name for names in named.values() for name in names} == there
    for number, names in named.items():
        assert names, f"pitfall {number} has no test"
        assert all(name.startswith(f"test_pitfall_{number:02}_") for name in names)
