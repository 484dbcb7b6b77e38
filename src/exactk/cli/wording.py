"""Messages of the library in the words of the command line: options in place of parameters."""

from __future__ import annotations

import re

from exactk.utils.formatting import escape_controls

__all__ = ["as_options", "as_sentence"]

# Names and values are quoted, and are the user's: whatever they say, it is no parameter.
_QUOTED = re.compile(r"""(?<!\w)(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")""")
# While the rest is put into other words, the n-th of them is \0n\0, or \1n\1 for one that is to
# lose its quotes.
_ANY = "(\0\\d+\0)"
_BARE = "\1\\1\1"
_PLACE = re.compile(r"([\0\1])(\d+)\1")

# Parameters whose names are no words of English, and the options that they are.
_NAMES = {
    name: f"--{name.replace('_', '-')}"
    for name in (
        "at_least", "at_most", "k_max", "max_correlation", "max_sets", "memory_limit", "time_limit",
        "why_not",
    )
}  # fmt: skip
_NAME = rf"\b({'|'.join(_NAMES)})"

_WORDS = (
    (r"\b(task|criterion|method|loss)=\0(\d+)\0", "--\\1 \1\\2\1"),
    (rf"\bask it of problem\.with_loss\({_ANY}\)", "leave --loss out"),
    (r"\bk=\0(\d+)\0", f"-k {_BARE}"),
    (r"\bcv must be\b", "--folds must be"),
    (r"\bcv=(\d+)", r"--folds \1"),
    (r"\bcv is for\b", "--folds is for"),
    (r"\bleave cv out\b", "leave --folds out"),
    (r"(?:^|(?<=and ))groups (?=is for|has |needs the rows|puts)", "--groups "),
    (r"\bleave groups out\b", "leave --groups out"),
    (r", as in Problem\.\w+\(memory_limit=\.\.\.\)", ""),
    (r"\bmemory_limit in Problem\.\w+", "memory_limit"),
    # None stands for an option that is not given.
    (r", or None \([^()]*\)", ""),
    (
        r"\bmake it (?:with|of the table:) Problem\.\w+(?:, from_\w+)*(?: or from_\w+)?",
        "give TABLE and --target in place of --from-moments",
    ),
    (r"(?<!in Python )(load the table and use Problem\.|call problem\.)", r"in Python \1"),
    (rf"\bfeature_groups\[{_ANY}\]", r"--group \1"),
    (rf"\bquotas\[{_ANY}\]", r"--family \1"),
    (rf"\bcosts\[{_ANY}\]", r"--costs \1"),
    (r"^(budget|costs) needs (budget|costs)\b", r"--\1 needs --\2"),
    (r"(?<![-\w])budget=", "--budget "),
    (r"^(include|exclude|budget|costs)(?=:| must| has| names)", r"--\1"),
    (r"\binclude and exclude contradict\b", "--include and --exclude contradict"),
    (r"\bthan include asks\b", "than --include asks"),
    (r"\bother than exclude\b", "other than --exclude"),
    (r"(?<![-\w])(include|exclude) (?=\0)", r"--\1 "),
    (r"^(tolerance|effort|gap|within)(?= must)", r"--\1"),
    (r"^layer (?=\0)", "--layer "),
    (r"^sample_weight\b", "--weights"),
    (r"^names(?=: | \0)", "--gene-names"),
    (r"\bleave names out\b", "leave --gene-names out"),
    (r"^(chosen|result)(?=:| must| has)", "--features"),
)


def as_options(message: str) -> str:
    """Name options where the library names its parameters; what stands in quotes stays.

    Examples
    --------
    >>> as_options("more than memory_limit=80; raise memory_limit in Problem.from_arrays")
    'more than --memory-limit 80; raise --memory-limit'
    >>> print(as_options("include: there is no column 'k_max'"))
    --include: there is no column 'k_max'
    """
    quoted: list[str] = []

    def put_aside(match: re.Match[str]) -> str:
        quoted.append(match[0])
        return f"\0{len(quoted) - 1}\0"

    def put_back(match: re.Match[str]) -> str:
        text = quoted[int(match[2])]
        return text if match[1] == "\0" else text[1:-1]

    words = _QUOTED.sub(put_aside, message)
    for pattern, option in _WORDS:
        words = re.sub(pattern, option, words)
    words = re.sub(rf"{_NAME}=", lambda match: f"{_NAMES[match[1]]} ", words)
    words = re.sub(rf"{_NAME}\b", lambda match: _NAMES[match[1]], words)
    return _PLACE.sub(put_back, words)


def as_sentence(message: str) -> str:
    r"""Return a message on one line, with its end; what a terminal would obey is shown instead.

    Examples
    --------
    >>> print(as_sentence("there is no\n column \x1b[31m"))
    there is no column \x1b[31m.
    """
    sentence = escape_controls(" ".join(message.split()))
    return sentence if sentence.endswith((".", "?", "!")) else f"{sentence}."
