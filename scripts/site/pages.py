"""Hooks for mkdocs: pages outside of docs/, notebooks, and links to files of the repository that are
not part of the site."""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]

#: Pages from other directories of the repository, by their path in the site.
ELSEWHERE = {
    "index.md": "README.md",
    "ARCHITECTURE.md": "ARCHITECTURE.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "datasets.md": "datasets/README.md",
}

LINK = re.compile(r"(\]\()(?![a-z]+:|#|/)([^)#\s]+)(#[^)\s]*)?(\))")
#: Resources that a page would fetch from other servers.
FETCHED = re.compile(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?(?:https?:)?//[^\"'> ]+"
                     r"|<link\b[^>]*rel=[\"']?(?:stylesheet|preconnect|icon)[^>]*href=[\"']?(?:https?:)?//[^\"'> ]+")


def on_files(files: Files, config: Any) -> Files:
    for place, path in ELSEWHERE.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        files.append(File.generated(config, place, content=text))
    for file in [file for file in files if file.src_uri.endswith(".ipynb")]:
        text = notebook(json.loads(Path(file.abs_src_path).read_text(encoding="utf-8")))
        page = File.generated(config, file.src_uri.removesuffix(".ipynb") + ".md", content=text)
        files.append(page)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Resolves links to pages of the site or to files of the repository."""
    here = page.file.src_uri
    path = ELSEWHERE.get(here, f"docs/{here}")
    places = {path: place for place, path in ELSEWHERE.items()}

    def pointed(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link[2]))
        place = places.get(target, target.removeprefix("docs/")).replace(".ipynb", ".md")
        if target in places or (target.startswith("docs/") and files.get_file_from_path(place)):
            to = posixpath.relpath(place, posixpath.dirname(here) or ".")
        elif (ROOT / target).exists():
            kind = "tree" if (ROOT / target).is_dir() else "blob"
            to = f"{config.repo_url}/{kind}/main/{target}"
        else:
            to = link[2]
        return f"{link[1]}{to}{link[3] or ''}{link[4]}"

    return LINK.sub(pointed, markdown)


def on_post_page(output: str, page: Any, config: Any) -> str:
    found = FETCHED.search(output)
    if found:
        raise PluginError(f"{page.file.src_uri} would fetch from another server: {found[0]}")
    return output


def notebook(cells: dict[str, Any]) -> str:
    """A notebook as a page: text, code and outputs."""
    parts: list[str] = []
    for cell in cells["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif cell["cell_type"] == "code" and source.strip():
            parts.append(fenced(source, "python"))
            parts += [shown(output) for output in cell["outputs"]]
    return "\n\n".join(parts) + "\n"


def shown(output: dict[str, Any]) -> str:
    """The output of a cell: a picture, HTML, or text."""
    data = output.get("data", {})
    for kind in ("image/png", "image/gif"):
        if kind in data:
            picture = "".join(data[kind]).replace("\n", "")
            return f'<img alt="output" src="data:{kind};base64,{picture}">'
    for kind in ("text/html", "text/markdown", "image/svg+xml"):
        if kind in data:
            return "".join(data[kind])
    text = "".join(output.get("text", data.get("text/plain", "")))
    return fenced(text.rstrip("\n"), "text")


def fenced(text: str, language: str) -> str:
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"
