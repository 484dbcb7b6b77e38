"""One page on one choice of features, drawn from the record of an investigation alone."""

from exactk.report.choice.page import choice_page, write_choice_page

__all__ = ["choice_page", "write_choice_page"]
