"""What is minimised on the chosen columns: one file a kind of loss, and how each is fitted."""
