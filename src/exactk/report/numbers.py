"""Numbers as a reader wants them: enough digits, no more."""

from __future__ import annotations

from math import floor, isfinite, log10

__all__ = ["DASH", "MINUS", "exact", "finite", "percent", "plural", "short", "signed"]

MINUS = "\N{MINUS SIGN}"
DASH = "\N{EN DASH}"
SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def finite(value: object) -> float | None:
    """Return a number as a float, and None for what is not a finite number.

    Examples
    --------
    >>> finite(3), finite(float("nan")), finite(None), finite(True)
    (3.0, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    number = float(value)
    return number if isfinite(number) else None


def short(value: float | None, digits: int = 4) -> str:
    """Return a number with so many digits that count; an en dash for none.

    Examples
    --------
    >>> [short(v) for v in (45.714285, 0.00012345, 118, 1234567.0, -0.5, None)]
    ['45.71', '1.234×10⁻⁴', '118', '1.235×10⁶', '−0.5', '–']
    """
    if value is None:
        return DASH
    if value == 0:
        return "0"
    # The size after rounding: 9.9999 has one digit before the point, 9.99999 two.
    size = floor(log10(abs(float(f"{value:.{digits - 1}e}"))))
    if not -3 <= size <= 5:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        if "." in mantissa:
            mantissa = mantissa.rstrip("0").rstrip(".")
        return f"{mantissa}×10{str(int(exponent)).translate(SUPERSCRIPTS)}".replace("-", MINUS)
    text = f"{value:.{max(0, digits - 1 - size)}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text.replace("-", MINUS)


def percent(value: float | None) -> str:
    """Return a number with two decimals, as papers print percentages.

    Examples
    --------
    >>> percent(91.5), percent(None)
    ('91.50', '–')
    """
    return DASH if value is None else f"{value:.2f}".replace("-", MINUS)


def signed(text: str) -> str:
    """Put a plus before a number that is written without a sign.

    Examples
    --------
    >>> signed("0.25"), signed("−3"), signed("–"), signed("0.00")
    ('+0.25', '−3', '–', '0.00')
    """
    zero = not text.strip("0.")
    return text if text.startswith((MINUS, DASH)) or zero else f"+{text}"


def exact(value: float) -> str:
    """Return a number for a machine that sorts, as short as it can be read back.

    Examples
    --------
    >>> exact(0.1), exact(5.0)
    ('0.1', '5')
    """
    return repr(float(value)).removesuffix(".0")


def plural(count: int, noun: str) -> str:
    """Return a count with its noun.

    Examples
    --------
    >>> plural(1, "cell"), plural(2, "cell")
    ('1 cell', '2 cells')
    """
    return f"{count} {noun if count == 1 else noun + 's'}"
