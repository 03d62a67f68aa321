"""Readable figures, and Markdown tables."""

from collections.abc import Iterable, Sequence

from .ratios import Ratio

NONE = "-"


def is_missing(value: float | None) -> bool:
    """Whether a value was not measured: None, or NaN in a table."""
    return value is None or value != value


def number(value: float | None) -> str:
    """Three significant digits, without exponents."""
    if is_missing(value):
        return NONE
    if value == 0:
        return "0"
    # 0.9996 is rounded to 1.00, which has three digits, too.
    digits = next((digits for limit, digits in ((99.95, 0), (9.995, 1), (0.9995, 2), (0.09995, 3)) if abs(value) >= limit), 4)
    return f"{value:,.{digits}f}"


def size(count: float | None) -> str:
    """Bytes in decimal units, like those of links."""
    return NONE if is_missing(count) else _scaled(count, ("B", "KB", "MB", "GB", "TB"))


def rate(bits: float | None) -> str:
    """Bits per second."""
    return NONE if is_missing(bits) else _scaled(bits, ("bit/s", "Kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"))


def seconds(value: float | None) -> str:
    """A time, in milliseconds below one second."""
    if is_missing(value):
        return NONE
    return f"{number(value * 1000)} ms" if value < 1 else f"{number(value)} s"


def percent(part: float | None) -> str:
    """A fraction as a percentage."""
    return NONE if is_missing(part) else f"{part * 100:.2g} %" if part < 0.0995 else f"{part * 100:.0f} %"


def ratio(found: Ratio | None) -> str:
    """A ratio with its lowest and highest round."""
    return NONE if found is None else f"{number(found.median)} ({number(found.low)} to {number(found.high)})"


def ratio_over_rounds(found: Ratio | None) -> str:
    """The same with the number of rounds."""
    return NONE if found is None else f"{ratio(found)[:-1]} over {count(found.rounds, 'round')})"


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
