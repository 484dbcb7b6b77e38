"""The report on a selection: `investigate` computes it, `page` writes it as HTML."""
