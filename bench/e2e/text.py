"""Readable figures, and Markdown tables."""

from collections.abc import Iterable, Sequence

from .intervals import Interval

NONE = "-"


def number(value: float | None) -> str:
    """Three significant digits, without exponents."""
    if value is None:
        return NONE
    if value == 0:
        return "0"
    digits = next((digits for limit, digits in ((100, 0), (10, 1), (1, 2), (0.1, 3)) if abs(value) >= limit), 4)
    return f"{value:,.{digits}f}"


def size(count: float | None) -> str:
    """Bytes in decimal units, like those of links."""
    return NONE if count is None else _scaled(count, ("B", "KB", "MB", "GB", "TB"))


def rate(bits: float | None) -> str:
    """Bits per second."""
    return NONE if bits is None else _scaled(bits, ("bit/s", "Kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"))


def seconds(value: float | None) -> str:
    """A time, in milliseconds below one second."""
    if value is None:
        return NONE
    return f"{number(value * 1000)} ms" if value < 1 else f"{number(value)} s"


def percent(part: float | None) -> str:
    """A fraction as a percentage."""
    return NONE if part is None else f"{part * 100:.2g} %" if part < 0.0995 else f"{part * 100:.0f} %"


def ratio(found: Interval | None) -> str:
    """A ratio with its interval. Three decimals, so that 0.9696 does not look like 0.97."""
    return NONE if found is None else f"{found.median:.3f} ({found.low:.3f} to {found.high:.3f})"


def count(amount: int, word: str) -> str:
    """A number with its noun."""
    return f"{amount} {word}{'' if amount == 1 else 's'}"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table. Bars are escaped: pipelines contain them."""
    line = lambda parts: "| " + " | ".join(part.replace("|", "\\|").replace("\n", " ") for part in parts) + " |"
    return [line(columns), "|" + "---|" * len(columns), *map(line, rows)]


def _scaled(value: float, units: Sequence[str]) -> str:
    for unit in units[:-1]:
        # 999.6 would be rounded to 1,000.
        if abs(value) < 999.5:
            return f"{number(value)} {unit}" if unit != units[0] else f"{value:.0f} {unit}"
        value /= 1000
    return f"{number(value)} {units[-1]}"
