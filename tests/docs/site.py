"""Build the documentation as a site that needs no network: python -m tests.docs.site [FOLDER].

The pages are laid out as in the repository, so that links between them hold, and given to Zensical with the
navigation of docs/README.md. What they link to besides (programs, pictures) is copied along. Links that lead
nowhere, pages that are in no group, and whatever would be loaded from a network are errors.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.docs.fences import ROOT, without_fences
from tests.docs.navigation import API, GROUPS, INDEX, complaints, entries, pages

CONFIGURATION = ROOT / "docs" / "site"
ZENSICAL = Path(sys.executable).with_name("zensical")
SHIM, SHIM_ELSEWHERE = "iframe-worker.js", "https://unpkg.com/iframe-worker/shim"
"""With it the search works in a page that was opened as a file; MIT licence, by Martin Donath."""
_LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?(?:https?:)?//[^\"' >]*|"
    r"<link\b(?![^>]*rel=[\"']?(?:canonical|next|prev))[^>]*href=[\"']?(?:https?:)?//[^\"' >]*"
)
_TARGET = re.compile(r"\]\(([^)\s#:]+)(?:#[^)]*)?\)")
_CODE = re.compile(r"(`+).*?\1", re.DOTALL)


def main(arguments: list[str]) -> int:
    """Build the site and return an exit code."""
    output = Path(arguments[0] if arguments else ROOT / "site").resolve()
    found = entries(INDEX.read_text("utf-8"), INDEX.parent)
    if wrong := complaints(found, pages()):
        print("\n".join(wrong), file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="headgate-docs-") as place:
        folder = Path(place)
        lay_out(folder / "pages")
        (folder / "mkdocs.yml").write_text(configuration(folder / "pages"), "utf-8")
        command = ["build", "--strict", "--config-file", str(folder / "mkdocs.yml")]
        code = subprocess.run([str(ZENSICAL), *command], cwd=folder, check=False).returncode
        if code:
            return code
        if wrong := make_local(folder / "out"):
            print("\n".join(wrong), file=sys.stderr)
            return 1
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(folder / "out", output)
    print(f"the site is in {output}: open {output / 'index.html'}")
    return 0


def configuration(folder: Path) -> str:
    """Write the configuration with what depends on the pages and on where they are."""
    text = (CONFIGURATION / "mkdocs.yml").read_text("utf-8")
    text = text.replace("SOURCES", json.dumps(str(ROOT / "src")))
    text = text.replace("DOCSTRINGS", json.dumps(str(CONFIGURATION / "docstrings.py")))
    added = {"nav": navigation(folder), "docs_dir": folder.name, "site_dir": "out"}
    # JSON is YAML, too.
    return "\n".join([text, *(f"{name}: {json.dumps(value)}" for name, value in added.items()), ""])


def make_local(folder: Path) -> list[str]:
    """Take the shim for workers from the site itself, and list what pages still load from a network."""
    shutil.copy(CONFIGURATION / SHIM, folder / "assets" / SHIM)
    wrong = []
    for page in sorted(folder.rglob("*.html")):
        up = "../" * (len(page.relative_to(folder).parts) - 1)
        text = page.read_text("utf-8").replace(SHIM_ELSEWHERE, f"{up}assets/{SHIM}")
        page.write_text(text, "utf-8")
        wrong += [f"{page.relative_to(folder)} loads {found}" for found in _LOADED.findall(text)]
    return wrong


def lay_out(folder: Path) -> None:
    """Put pages, what they link to, and the pages of the API where MkDocs takes them from."""
    for page in [*pages(), INDEX, ROOT / "README.md"]:
        _copy(page, folder)
        prose = _CODE.sub("", without_fences(page.read_text("utf-8")))
        for target in _TARGET.findall(prose):
            other = (page.parent / target).resolve()
            if other.is_file() and other.suffix != ".md":
                _copy(other, folder)
    for name in ("extra.css", "accessibility.js"):
        shutil.copy(CONFIGURATION / name, folder / name)
    for title, (package, names) in API.items():
        homes = _homes(package)
        blocks = [f"## `{name}`\n\n::: {homes[name]}.{name}\n" for name in names]
        page = folder / "api" / f"{_file(title)}.md"
        page.parent.mkdir(exist_ok=True)
        page.write_text(f"# {title}\n\nPublic in `{package}`.\n\n" + "\n".join(blocks), "utf-8")
    errors = "# Errors\n\n::: headgate.errors\n    options:\n      heading_level: 2\n"
    (folder / "api" / "errors.md").write_text(errors, "utf-8")


def _copy(path: Path, folder: Path) -> None:
    place = folder / path.relative_to(ROOT)
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, place)


def _homes(package: str) -> dict[str, str]:
    """Read in which module each public name is, without importing what that needs."""
    path = ROOT / "src" / Path(*package.split(".")) / "__init__.py"
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOMES":
            homes = ast.literal_eval(node.value)
            return {
                name: home if home.startswith("headgate.") else f"{package}.{home}"
                for name, home in homes.items()
            }
    raise SystemExit(f"{path} has no _HOMES, where public names are loaded from")


def _file(title: str) -> str:
    return title.lower().replace(",", "").replace(" ", "-")


def navigation(folder: Path) -> list[object]:
    """Write the groups as MkDocs wants them: lists of one-entry objects."""
    top: list[object] = [{"Headgate": "README.md"}]
    found = entries(INDEX.read_text("utf-8"), INDEX.parent)
    for group in GROUPS:
        items: list[object] = []
        parts: dict[str, list[object]] = {}
        for entry in found:
            if entry.group == group:
                page = {entry.title: str(entry.page.relative_to(ROOT))}
                if not entry.part:
                    items.append(page)
                elif entry.part in parts:
                    parts[entry.part].append(page)
                else:
                    parts[entry.part] = [page]
                    items.append({entry.part: parts[entry.part]})
        if group == "Look up":
            names = [*API, "Errors"]
            items.append({"Python API": [{title: f"api/{_file(title)}.md"} for title in names]})
        top.append({group: items})
    top.append({"All pages": "docs/README.md"})
    assert all((folder / path).exists() for path in re.findall(r"'([^']+\.md)'", str(top)))
    return top


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
