from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from nd7tui.engine.agents.registry import adapter_for, find_program

if TYPE_CHECKING:
    from pathlib import Path


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("file", "link", "name"),
    [
        ("claude", None, "claude"),
        ("codex", None, "codex"),
        ("versions/2.1.332", "claude", "claude"),
        ("node_modules/@openai/codex/bin/codex.js", "codex", "codex"),
        ("claude", "cc", "claude"),
        ("claude.exe", "agent", "claude"),
        ("claude-wrapper", None, None),
        ("bash", "sh", None),
    ],
)
def test_recognised_by_the_file_or_a_link_on_the_way(tmp_path, file, link, name):
    target = program(tmp_path / "real" / file)
    typed = target
    if link:
        typed = tmp_path / link
        typed.symlink_to(os.path.relpath(target, tmp_path))
    adapter = adapter_for([str(typed), "--x"])
    assert (adapter.name if adapter else None) == name


def test_looked_up_in_path(tmp_path, monkeypatch):
    program(tmp_path / "codex")
    monkeypatch.setenv("PATH", str(tmp_path))
    adapter = adapter_for(["codex"])
    assert adapter is not None
    assert adapter.name == "codex"
    assert find_program("codex") == str(tmp_path / "codex")


def test_a_directory_or_a_plain_file_is_no_program(tmp_path, monkeypatch):
    (tmp_path / "claude").mkdir()
    (tmp_path / "codex").write_text("")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert adapter_for(["claude"]) is None
    assert adapter_for(["codex"]) is None


def test_the_word_demo_is_the_bundled_agent_and_a_path_is_not(tmp_path, monkeypatch):
    program(tmp_path / "demo")
    monkeypatch.setenv("PATH", str(tmp_path))
    adapter = adapter_for(["demo"])
    assert adapter is not None
    assert adapter.name == "demo"
    assert adapter_for([str(tmp_path / "demo")]) is None


def test_unknown_and_empty():
    assert adapter_for([]) is None
    assert adapter_for(["/nowhere/at/all"]) is None
    assert adapter_for(["with\0nul"]) is None


def test_a_loop_of_links_ends(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert adapter_for([str(tmp_path / "a")]) is None
