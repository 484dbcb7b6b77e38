"""``python -m exactk`` is the command line."""

from __future__ import annotations

from exactk.cli import main

if __name__ == "__main__":
    main()
