"""Pages of the site that lie outside of docs/: README.md, ARCHITECTURE.md and others of the repository's root.

A hook of mkdocs (see mkdocs.yml). The files stay where they are, and so do the links in them. Here each link is turned
into one that leads to the same file on the site.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
ROOT_PAGES = {
    "README.md": "about.md",  # a README.md would be the page of its folder
    "ARCHITECTURE.md": "ARCHITECTURE.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "LICENSE": "LICENSE.md",
}
"""Files of the repository's root, and the pages that they are on the site."""
EXAMPLES = ("examples/first_steps.ipynb",)
"""Files that pages link to, which are copied to the site."""
_LINK = re.compile(r"(?<=\]\()([^)#\s]+)")
_FETCHED = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*(?:src|href)=["']?(?:https?:)?//[^>]*>""")
_HEADING = re.compile(r"^# .*\n", re.MULTILINE)


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the files that lie outside of docs/."""
    for name, uri in ROOT_PAGES.items():
        text = (ROOT / name).read_text()
        if name == "LICENSE":
            text = f"# License\n\n```text\n{text}```\n"
        elif name == "README.md":
            text = _HEADING.sub("# About daws\n", text, count=1)
        files.append(File.generated(config, uri, content=text))
    for name in EXAMPLES:
        files.append(File.generated(config, name, content=(ROOT / name).read_bytes()))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links between files of the repository into links between pages of the site."""
    here = page.file.src_uri
    source = {uri: name for name, uri in ROOT_PAGES.items()}.get(here, f"docs/{here}")

    def on_site(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[0]))
        uri = ROOT_PAGES.get(target, target.removeprefix("docs/"))
        if ":" in link[0] or files.get_file_from_path(uri) is None:
            return link[0]
        return posixpath.relpath(uri, posixpath.dirname(here))

    return _LINK.sub(on_site, markdown)


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:
    """Refuse pages that fetch scripts, styles or images from other hosts: the site must work without a network."""
    if fetched := _FETCHED.findall(output):
        raise PluginError(f"{page.file.src_uri} fetches from another host: {fetched[0]}")
    return output
