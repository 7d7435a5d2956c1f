"""Pages and files of the site that lie outside of this folder, and links to them: a hook of MkDocs.

A link is written as on the file system, so that it also leads somewhere in the repository.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "quickstart.md",
    "CONTRIBUTING.md": "contributing.md",
    "deploy/README.md": "deploy.md",
    "bert_tf/cpu/README.md": "cpu.md",
    "bert_tf/xla/README.md": "xla.md",
    "SECURITY.md": "security.md",
}
"""The page of the site by path in the repository."""
EXAMPLES = {
    "examples/quickstart.ipynb": "quickstart.ipynb",
    "examples/beam_inference.py": "beam_inference.py",
    "examples/airflow_score.py": "airflow_score.py",
}
"""Files that readers download, likewise."""
_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s#]+)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages and files."""
    from mkdocs.structure.files import File

    for source, page in {**PAGES, **EXAMPLES}.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Leads the links of a page to pages of the site."""
    sources = {name: source for source, name in PAGES.items()}
    return site_links(markdown, sources.get(page.file.src_uri, f"docs/{page.file.src_uri}"))


def site_links(markdown: str, source: str) -> str:
    """The text of a page with links as the site has them.

    Args:
        markdown: as it is written.
        source: its path in the repository.
    """

    known = {**PAGES, **EXAMPLES}

    def to_page(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[1]))
        return f"]({known.get(target, target.removeprefix('docs/'))}"

    return _LINK.sub(to_page, markdown)
