# ruff: noqa: N806 - classes made in functions
"""The records behave as `dataclasses` do in all that they have."""

from __future__ import annotations

import copy
import dataclasses
import functools
import pickle

import pytest

from nd7tui.engine import records


def make(module):
    @module.dataclass(frozen=True, slots=True)
    class Frozen:
        x: int
        y: str = "d"
        z: list[int] = module.field(default_factory=list, compare=False)
        w: object = module.field(default=None, repr=False)

        def __post_init__(self):
            if self.x < 0:
                raise ValueError

        @property
        def twice(self):
            return self.x * 2

    @module.dataclass(slots=True)
    class Open:
        x: int = 1

    @module.dataclass(frozen=True)
    class Plain:
        x: int = 3

        def only(self):
            return super().__hash__()

    return Frozen, Open, Plain


@pytest.mark.parametrize("module", [dataclasses, records])
def test_as_dataclasses(module):
    Frozen, Open, Plain = make(module)
    one = Frozen(1)
    assert (one.x, one.y, one.z, one.w, one.twice) == (1, "d", [], None, 2)
    assert one == Frozen(x=1, z=[9])
    assert one != Frozen(2)
    assert hash(one) == hash(Frozen(1))
    assert Frozen(1).z is not Frozen(1).z
    assert repr(one).endswith("Frozen(x=1, y='d', z=[])")
    with pytest.raises(AttributeError):
        one.x = 2
    with pytest.raises(AttributeError):
        del one.x
    with pytest.raises((AttributeError, TypeError)):
        one.other = 1
    with pytest.raises(ValueError):  # noqa: PT011
        Frozen(-1)
    assert module.replace(one, x=5) == Frozen(5)
    with pytest.raises(ValueError):  # noqa: PT011
        module.replace(one, x=-5)
    with pytest.raises(TypeError):
        Frozen()
    with pytest.raises(TypeError):
        Frozen(1, nonsense=2)
    assert copy.copy(one) == one
    match one:
        case Frozen(x, y):
            assert (x, y) == (1, "d")
    changed = Open()
    changed.x = 7
    assert changed == Open(7)
    assert Open.__hash__ is None
    assert Plain.x == 3
    assert Plain() == Plain(3)
    assert one != (1, "d")


@records.dataclass(frozen=True, slots=True)
class Kept:
    a: int
    b: tuple[int, ...] = ()


def test_they_can_be_pickled():
    assert pickle.loads(pickle.dumps(Kept(1, (2,)))) == Kept(1, (2,))  # noqa: S301


def test_a_field_without_a_default_after_one_with_is_an_error():
    with pytest.raises(TypeError):

        @records.dataclass()
        class Wrong:
            a: int = 1
            b: int


def test_a_record_is_a_dataclass_to_who_asks():
    Frozen, _, Plain = make(records)
    one = Frozen(1, "y", [2])
    assert dataclasses.replace(one, x=5) == Frozen(5, "y", [2])
    assert dataclasses.asdict(one) == {"x": 1, "y": "y", "z": [2], "w": None}
    assert [(field.name, field.repr, field.compare) for field in dataclasses.fields(Frozen)] == [
        ("x", True, True),
        ("y", True, True),
        ("z", True, False),
        ("w", False, True),
    ]
    assert dataclasses.replace(Plain(), x=4).x == 4


def test_frozen_without_slots_caches_properties():
    @records.dataclass(frozen=True)
    class Cached:
        x: int

        @functools.cached_property
        def made(self):
            return [self.x]

    one = Cached(1)
    assert one.made is one.made
    assert one == Cached(1)
    assert records.replace(one, x=2).made == [2]
