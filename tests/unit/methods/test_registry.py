from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import import_module

import pytest

from exactk import UnknownMethodError, UnknownOptionError
from exactk.methods import registry
from exactk.methods.base import Method

NAMES = registry.names()


def test_the_default_comes_first_and_no_name_twice() -> None:
    assert NAMES[0] == "exchange"
    assert {"exchange", "greedy", "exhaustive"} <= set(NAMES)
    assert len(set(NAMES)) == len(NAMES)


def test_the_list_is_a_copy() -> None:
    registry.names().clear()
    assert registry.names() == NAMES


def test_each_line_says_where_the_method_is_and_what_it_does() -> None:
    for name in NAMES:
        info = registry.describe(name)
        assert info.name == name == name.lower()
        module, _, attribute = info.target.partition(":")
        cls = getattr(import_module(module), attribute)
        assert cls is registry.method_class(name)
        assert issubclass(cls, Method), name
        assert cls.__name__.lower() == name == module.rpartition(".")[2]
        assert all((info.family, info.reference, info.summary, inspect.getdoc(cls))), name


def test_methods_are_made_with_their_defaults() -> None:
    for name in NAMES:
        method = registry.create(name)
        assert type(method) is registry.method_class(name)
        signature = inspect.signature(type(method).__init__).parameters
        for option, value in method.get_params().items():
            assert value == signature[option].default, f"{option} of {name}"


def test_options_are_passed_on() -> None:
    assert registry.create("exchange", effort=2.5, random_state=1).get_params() == {
        "effort": 2.5,
        "init": None,
        "random_state": 1,
    }


@pytest.mark.parametrize("look_up", [registry.describe, registry.create, registry.method_class])
@pytest.mark.parametrize(
    ("name", "meant"), [("exchnage", "exchange"), ("Greedy", "greedy"), ("exhaustiv", "exhaustive")]
)
def test_an_unknown_name_gets_the_nearest(look_up, name: str, meant: str) -> None:
    with pytest.raises(UnknownMethodError, match=f"{name!r}; did you mean {meant!r}"):
        look_up(name)


def test_a_name_near_to_none_gets_the_list() -> None:
    with pytest.raises(UnknownMethodError) as caught:
        registry.describe("zzz")
    assert "did you mean" not in str(caught.value)
    for name in NAMES:
        assert name in str(caught.value)


def test_an_unknown_option_gets_the_nearest() -> None:
    with pytest.raises(UnknownOptionError, match=r"'exchange'.*'efort'.*did you mean 'effort'"):
        registry.create("exchange", efort=1)
    with pytest.raises(UnknownOptionError, match=r"'greedy' has no option 'effort'"):
        registry.create("greedy", effort=1)


def test_methods_are_imported_only_when_requested() -> None:
    code = (
        "import sys, exactk.methods.registry as r; r.names(); "
        "loaded = [m for m in sys.modules if m.startswith('exactk.methods.')]; "
        "print(*sorted(loaded))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [
        "exactk.methods.base", "exactk.methods.iteration", "exactk.methods.registry",
    ]  # fmt: skip
