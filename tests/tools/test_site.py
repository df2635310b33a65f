"""The site of the documentation: what is looked for in it once it is built."""

from __future__ import annotations

from pathlib import Path

from tools.docs.site import dead_links


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/index.html").write_text('<h1 id="there">x</h1> <a href="../file.txt">file</a>')
    (tmp_path / "file.txt").touch()
    good = '<a href="folder/#there">a</a> <a href="https://example.com/x">b</a> <a href="#here" id="here">c</a>'
    (tmp_path / "good.html").write_text(good)
    assert dead_links(tmp_path) == []
    (tmp_path / "bad.html").write_text('<a href="nothing.html">a</a> <a href="folder/index.html#gone">b</a>')
    assert dead_links(tmp_path) == ["bad.html: nothing.html", "bad.html: folder/index.html#gone"]
