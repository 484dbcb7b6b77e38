"""One self-contained HTML page from the records of a benchmark, and from nothing else."""

from exactk.report.html import page, write_page

__all__ = ["page", "write_page"]
