"""One file a method; the registry names them."""
