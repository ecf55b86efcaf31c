"""What stands on the invoice, and where. The companies, the people, the addresses and the bank
account are invented; the IBAN is that of no country."""

from typing import NamedTuple

PAGE_WIDTH, PAGE_HEIGHT = 595, 842
"""A4, in points."""
LEFT, RIGHT = 56, 539
_LINE = 16
"""From one line of a paragraph to the next."""


class Cell(NamedTuple):
    """A piece of text; `y` is how far its foot is from the top of the page."""

    x: float
    y: float
    text: str
    size: float = 10
    bold: bool = False
    ends_at_x: bool = False


Row = list[Cell]


class Page(NamedTuple):
    rows: list[Row]
    """In reading order."""
    rules: list[float]
    """Where lines are drawn from margin to margin."""


CUSTOMER = ("Tarnbrook Observatory", "Attn. Dr. Ines Calloway", "12 Lantern Row", "Ashwick AW3 9QT")
FACTS = (
    ("Invoice number", "QM-2026-0417"),
    ("Invoice date", "14 March 2026"),
    ("Due date", "13 April 2026"),
    ("Customer number", "20815"),
)
OPENING = (
    "This invoice was issued on 14 March 2026 to our customer Tarnbrook Observatory, 12 Lantern",
    "Row, Ashwick. It covers the goods and services that were delivered in February 2026.",
)
HEADINGS = ("No.", "Description", "Quantity", "Price", "Amount")
ITEMS = (
    ("1", "Star atlas, large print edition", "12", "48.50", "582.00"),
    ("2", "Observation log books, bound", "150", "6.20", "930.00"),
    ("3", "Archival paper A3, box of 200 sheets", "18", "34.00", "612.00"),
    ("4", "Printing of visitor guides", "2,500", "0.38", "950.00"),
    ("5", "Poster set of the winter sky", "40", "13.80", "552.00"),
    ("6", "Design work, by the hour", "5", "60.00", "300.00"),
)
SUMS = (("Net amount", "3,926.00"), ("VAT 20%", "785.20"), ("Total EUR", "4,711.20"))
CLOSING = (
    "The total amount due is EUR 4,711.20. It includes value added tax of EUR 785.20. Please pay",
    "by 13 April 2026 and quote the invoice number QM-2026-0417 with your payment.",
)
TERMS = {
    "Payment": (
        "Payment is due within 30 days of the invoice date, without deduction. Please transfer the",
        "amount to our account at Fenbridge Mutual Bank, IBAN XX68 QUIL 2190 5512 3456 78. If",
        "payment is late, we charge interest at a rate of 8 percent per year.",
    ),
    "Delivery": (
        "The goods left our warehouse on 24 February 2026 and were received on 26 February 2026.",
        "They remain our property until they have been paid in full.",
    ),
    "Notice period": (
        "The supply agreement may be ended by either side with a notice period of three months to",
        "the end of a quarter. Notice must be given in writing.",
    ),
    "Complaints": (
        "Please report damaged or missing goods within 14 days of their receipt. We replace them",
        "at our own cost.",
    ),
    "Contact": (
        "Questions about this invoice are answered by Mara Ellison in our accounts department. You",
        "can reach her by telephone at +44 20 7946 0018, or by mail to accounts@quillmere.example.",
    ),
}


def pages() -> list[Page]:
    return [_first_page(), _second_page()]


def text_of(pages: list[Page]) -> str:
    """A line for each row, and a form feed between pages."""
    return "\f".join(
        "".join(" ".join(cell.text for cell in row) + "\n" for row in page.rows) for page in pages
    )


def _first_page() -> Page:
    rows = [
        *_letterhead(),
        *_paragraph(132, CUSTOMER),
        *(_fact(206 + _LINE * n, *fact) for n, fact in enumerate(FACTS)),
        [Cell(LEFT, 296, "Invoice", 16, bold=True)],
        *_paragraph(322, OPENING),
        _item(372, HEADINGS, bold=True),
        *(_item(396 + 22 * n, item) for n, item in enumerate(ITEMS)),
        *(_sum(536 + 19 * n, *one) for n, one in enumerate(SUMS)),
        *_paragraph(618, CLOSING),
        _footer(1),
    ]
    return Page(rows, [96, 379, 516, 784])


def _second_page() -> Page:
    rows = [*_letterhead(), [Cell(LEFT, 136, "Terms of payment and delivery", 16, bold=True)]]
    y = 172
    for title, lines in TERMS.items():
        rows += [[Cell(LEFT, y, title, 11, bold=True)], *_paragraph(y + 19, lines)]
        y += _LINE * len(lines) + 36
    return Page([*rows, _footer(2)], [96, 784])


def _letterhead() -> list[Row]:
    return [
        [Cell(LEFT, 66, "Quillmere Paper & Print Ltd.", 18, bold=True)],
        [Cell(LEFT, 84, "4 Millrace Lane, Fenbridge FB2 7XK", 9)],
    ]


def _footer(number: int) -> Row:
    return [
        Cell(LEFT, 800, "Registered in Fenbridge", 9),
        Cell(RIGHT, 800, f"Page {number} of 2", 9, ends_at_x=True),
    ]


def _paragraph(y: float, lines: tuple[str, ...]) -> list[Row]:
    return [[Cell(LEFT, y + _LINE * n, line)] for n, line in enumerate(lines)]


def _fact(y: float, name: str, value: str) -> Row:
    return [Cell(340, y, name), Cell(440, y, value)]


def _item(y: float, texts: tuple[str, ...], bold: bool = False) -> Row:
    places = ((LEFT, False), (90, False), (350, True), (445, True), (RIGHT, True))
    return [
        Cell(x, y, text, bold=bold, ends_at_x=ends)
        for (x, ends), text in zip(places, texts, strict=True)
    ]


def _sum(y: float, name: str, amount: str) -> Row:
    bold = name.startswith("Total")
    return [Cell(385, y, name, bold=bold), Cell(RIGHT, y, amount, bold=bold, ends_at_x=True)]
