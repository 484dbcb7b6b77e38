"""What records say of the machine: enough for a time, nothing about whose it is."""

from __future__ import annotations

import os
import platform

import numpy as np
import sklearn

import exactk
from exactk.papers.experiments.environment import machine, versions


def test_machine():
    found = machine()
    assert found["cores"] == os.cpu_count()
    assert found["processor"]
    known = {"processor", "cores", "memory_gib", "system", "threads", "compiled"}
    assert set(found) == known, "no name of a host or a person"
    assert found["threads"] == 1
    assert platform.system() in found["system"]


def test_versions():
    found = versions()
    assert found["numpy"] == np.__version__
    assert found["scikit-learn"] == sklearn.__version__
    assert platform.python_version().startswith(found["python"])
    assert found["exactk"] == exactk.__version__
