"""Elements of HTML and SVG: whatever is not an element is escaped."""

import html

from contract_tests.reports.publishing import legible

_EMPTY = frozenset({"br", "circle", "line", "link", "meta", "path", "rect", "use"})


class Markup(str):
    """It may stand in a page as it is."""

    __slots__ = ()


def tag(name: str, /, *inside: str | None, **attributes: str | float | None) -> Markup:
    """`class_` is the attribute class, `stroke_width` is stroke-width; None is left out."""
    told = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    if name in _EMPTY and not inside:
        return Markup(f"<{name}{told}/>")
    return Markup(f"<{name}{told}>{joined(*inside)}</{name}>")


def joined(*parts: str | None) -> Markup:
    return Markup("".join(escaped(part) for part in parts if part is not None))


def escaped(text: str) -> Markup:
    return text if isinstance(text, Markup) else Markup(html.escape(legible(text)))


def _attribute(name: str, value: str | float) -> str:
    said = value if isinstance(value, str) else f"{value:g}"
    return f' {name.rstrip("_").replace("_", "-")}="{html.escape(legible(said))}"'
