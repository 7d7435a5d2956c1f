"""Properties of every page."""

from __future__ import annotations

from html.parser import HTMLParser

# Elements that never have content, and those of SVG, which may close themselves.
_VOID = {"meta", "input", "wbr"}
_SELF_CLOSING = {"path", "circle"}
# Attributes that make a browser ask for something.
_LOADING = {"src", "href", "srcset", "data", "action", "poster", "background", "xlink:href"}


class Page(HTMLParser):
    """Reads a page as a browser does.

    Attributes:
        text: what it shows, pieces in order.
        elements: the names of its elements, in order.
        attributes: name and value of all their attributes.
    """

    def __init__(self, html: str):
        super().__init__()
        self._open: list[str] = []
        self.text: list[str] = []
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(html)
        self.close()
        assert not self._open, f"not closed: {self._open}"

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += attrs
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in _VOID | _SELF_CLOSING, f"<{tag}/> is not closed for a browser"
        self.elements.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self._open and self._open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        if self._open and self._open[-1] != "style":
            self.text.append(data)


def check_page(html: str) -> Page:
    """Check that a page is well-formed and needs nothing beside it, and no script.

    Its tables and listings can be scrolled by the keyboard, its plots have a name, and it is styled
    for phones and for both color schemes.
    """
    page = Page(html)
    assert not {"script", "link", "img", "iframe", "object", "a"} & set(page.elements)
    assert not [name for name, _ in page.attributes if name in _LOADING or name.startswith("on")]
    assert "url(" not in html and "@import" not in html
    assert "default-src 'none'" in html, "a browser is told to fetch nothing and to run no script"
    assert ("name", "viewport") in page.attributes and "prefers-color-scheme: dark" in html
    regions = [value for name, value in page.attributes if name == "role"]
    assert regions.count("region") == page.elements.count("table") + page.elements.count("pre")
    assert regions.count("img") == page.elements.count("svg")
    labels = [value for name, value in page.attributes if name == "aria-label"]
    assert len(labels) == len(regions) and all(labels)
    return page
