"""Record the answers of the library, and compare later code with them.

``python -m tools.regression compare tools/regression/record.json`` takes three minutes on one core
and lists every answer that changed; ``--only 'cli*'`` runs a part. A commit that changes an answer
on purpose says why, and updates the record with ``record FILE --only PATTERN``. A rename costs a
line in ``calls.py`` or ``cases.txt``. ``EXACTK_DATA``, PyTorch, Dask, PySpark and anndata add
cases; those that cannot run are counted, not compared, and stay in the record as they are.
"""
