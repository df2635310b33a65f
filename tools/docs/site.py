"""Build the documentation as a site that needs no other host:

    python -m tools.docs.site [FOLDER]

Pages are taken as they are in the repository, with the files that they link to, so that every link leads somewhere;
MkDocs builds them strictly. Then every page is looked through for anything that a browser would get from elsewhere.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit

from tools.docs.nav import DOCS, ROOT, chapters, title_of

MKDOCS = ROOT / ".venv-site/bin/mkdocs"
OUTSIDE_PAGES = ("README.md", "README.pt-BR.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
LINK = re.compile(r"(\]\()([^)#\s]+)(#[^)]*)?(\))")
CODE = re.compile(r"^```.*?^```$", re.M | re.S)
LOADING_TAGS = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "form": "action"}
NOT_LOADED_RELATIONS = frozenset(("canonical", "prev", "next", "alternate", "edit"))


def stage(folder: Path) -> None:
    """Copy pages and what they link to, in the layout of the repository, so that relative links stay right."""
    pages = [ROOT / name for name in OUTSIDE_PAGES]
    pages += sorted(DOCS.rglob("*.md"))
    done: set[Path] = set()
    while pages:
        page = pages.pop().resolve()
        if page in done:
            continue
        done.add(page)
        text = page.read_text(encoding="utf-8")
        for target in _targets(page, text):
            if target.suffix == ".md":
                pages.append(target)
            elif target.is_dir():
                _list(target, folder)
            elif target.is_file():
                _copy(target, folder)
        copy = folder / _place(page)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(_relinked(page, text), encoding="utf-8")
    shutil.copy(DOCS / "llms.txt", folder / "llms.txt")


def _place(page: Path) -> Path:
    place = page.relative_to(ROOT)
    return Path("index.md") if place == Path("README.md") else place


def _targets(page: Path, text: str) -> list[Path]:
    found = (match[2] for match in LINK.finditer(CODE.sub("", text)))
    return [(page.parent / one).resolve() for one in found if not one.startswith(("http:", "https:", "mailto:"))]


def _relinked(page: Path, text: str) -> str:
    """The page with links to folders as links to the page that lists them, and to README as to the first page."""

    def relink(match: re.Match[str]) -> str:
        target = match[2]
        if target.startswith(("http:", "https:", "mailto:")):
            return match[0]
        path = (page.parent / target).resolve()
        if path.is_dir():
            target = _relative(page, path / "index.md")
        elif path == ROOT / "README.md":
            target = _relative(page, ROOT / "index.md")
        return f"{match[1]}{target}{match[3] or ''}{match[4]}"

    parts: list[str] = []
    end = 0
    for block in CODE.finditer(text):
        parts += [LINK.sub(relink, text[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, LINK.sub(relink, text[end:])])


def _relative(page: Path, target: Path) -> str:
    up = "../" * (len(_place(page).parts) - 1)
    return up + target.relative_to(ROOT).as_posix()


def _list(directory: Path, folder: Path) -> None:
    """Make a page of what is in a directory, with its files."""
    rows = []
    for file in sorted(one for one in directory.rglob("*") if one.is_file()):
        name = file.relative_to(directory).as_posix()
        if any(part == "__pycache__" or part.startswith(".") for part in Path(name).parts):
            continue  # MkDocs leaves them out
        rows.append(f"- [{title_of(file) if file.suffix == '.md' else name}]({name})")
        if file.suffix != ".md":
            _copy(file, folder)
    page = folder / directory.relative_to(ROOT) / "index.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join([f"# {directory.relative_to(ROOT)}", "", *rows, ""]), encoding="utf-8")


def _copy(file: Path, folder: Path) -> None:
    copy = folder / file.relative_to(ROOT)
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, copy)


def configuration(pages: Path, site: Path) -> dict[str, object]:
    """What MkDocs is told. JSON is YAML."""
    nav: list[object] = [{"Oráculo": "index.md"}]
    for chapter, names in chapters().items():
        nav.append({chapter: [{title_of(DOCS / name): f"docs/{name}"} for name in names]})
    nav.append({"Changes": ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]})
    return {
        "site_name": "Oráculo",
        "docs_dir": str(pages),
        "site_dir": str(site),
        "use_directory_urls": False,
        "exclude_docs": "!.env.example\n",  # else every name that begins with a point
        "theme": {
            "name": "material",
            "font": False,
            "features": ["navigation.tabs", "navigation.top", "content.code.copy", "search.suggest"],
            "palette": [
                {"media": "(prefers-color-scheme: light)", "scheme": "default", "primary": "teal"},
                {"media": "(prefers-color-scheme: dark)", "scheme": "slate", "primary": "teal"},
            ],
        },
        "plugins": [{"search": {"lang": ["en", "pt"]}}],
        "markdown_extensions": [
            "tables",
            "admonition",
            {"toc": {"permalink": True}},
            "pymdownx.highlight",
            "pymdownx.superfences",
        ],
        "extra": {"generator": False},
        "nav": nav,
        "not_in_nav": "*\n",
        "validation": {
            "links": {"not_found": "warn", "anchors": "warn", "absolute_links": "warn", "unrecognized_links": "warn"}
        },
    }


class _Loads(HTMLParser):
    """What a browser gets when it shows a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        name = LOADING_TAGS.get(tag)
        if name is None or (tag == "link" and NOT_LOADED_RELATIONS & set((given.get("rel") or "").split())):
            return
        self.found.append(given.get(name) or "")


def foreign_loads(site: Path) -> list[str]:
    """Everything that a page or a style would get from another host."""
    found = []
    for page in sorted(site.rglob("*.html")):
        loads = _Loads()
        text = page.read_text(encoding="utf-8")
        loads.feed(text)
        found += [f"{page.relative_to(site)}: {one}" for one in loads.found if re.match(r"(https?:)?//", one)]
        if 'class="mermaid"' in text:
            found.append(f"{page.relative_to(site)}: a diagram, whose script comes from another host")
    for style in sorted(site.rglob("*.css")):
        urls = re.findall(r"url\(\s*['\"]?((?:https?:)?//[^)'\"]+)", style.read_text(encoding="utf-8"))
        found += [f"{style.relative_to(site)}: {url}" for url in urls]
    return found


class _Links(HTMLParser):
    """Where a page leads, and the places in it that others may lead to."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.places |= {given[name] or "" for name in ("id", "name") if name in given}
        if tag == "a" and given.get("href"):
            self.targets.append(given["href"] or "")


def dead_links(site: Path) -> list[str]:
    """Every link inside the site that leads to no file, or to no place in one. MkDocs looks at pages only."""
    pages: dict[Path, _Links] = {}
    for page in sorted(site.rglob("*.html")):
        pages[page] = _Links()
        pages[page].feed(page.read_text(encoding="utf-8"))
    found = []
    for page, links in pages.items():
        for target in links.targets if page.name != "404.html" else ():
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            file = file / "index.html" if file.is_dir() else file
            there = pages.get(file)
            place = unquote(parts.fragment)
            if not file.exists() or (place and there is not None and place not in there.places):
                found.append(f"{page.relative_to(site)}: {target}")
    return found


def build(site: Path) -> int:
    """Build it; return the exit status."""
    with TemporaryDirectory() as folder:
        pages = Path(folder) / "pages"
        stage(pages)
        config = Path(folder) / "mkdocs.yml"
        config.write_text(json.dumps(configuration(pages, site)), encoding="utf-8")
        command = [str(MKDOCS), "build", "--strict", "--config-file", str(config)]
        known = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        built = subprocess.run(command, env=known, capture_output=True, text=True)  # --quiet would count no warnings
    if built.returncode:
        told = [line for line in built.stderr.splitlines() if not line.startswith("INFO")]
        sys.stderr.write("\n".join(told) + "\n")
        return built.returncode
    foreign, dead = foreign_loads(site), dead_links(site)
    for line in foreign:
        sys.stderr.write(f"from another host: {line}\n")
    for line in dead:
        sys.stderr.write(f"leads nowhere: {line}\n")
    if not foreign and not dead:
        sys.stderr.write(f"{len(list(site.rglob('*.html')))} pages in {site}; open {site / 'index.html'}\n")
    return 1 if foreign or dead else 0


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "site").resolve()))
