"""`dataclass`, `field` and `replace` at a tenth of the price, for what is imported at every start of a run.

Rule: a class decorated here behaves as one of `dataclasses` in all that nd7 uses: construction by position or name,
defaults, equality within the class, a hash when frozen, no assignment when frozen, slots, `__post_init__`, `repr`.
Anything else (`order`, `InitVar`, `KW_ONLY`) is not there and fails at import or at type checking, not later. To
`dataclasses.replace`, `fields` and `asdict` a record is a dataclass; only they pay for it.
Why: the standard decorator takes 0.4 to 0.8 ms a class and imports `inspect` (6 ms); the engine has some fifty classes
and 60 ms to start a program in.
Source: PEP 681 (what type checkers assume), PEP 557 (the semantics).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar, dataclass_transform

    T = TypeVar("T")
else:

    def dataclass_transform(**_options: object) -> Any:
        """Does nothing; it is there for type checkers."""
        return lambda decorator: decorator


MISSING: Any = object()
FIELDS = "__record_fields__"


class FrozenError(AttributeError):
    """An assignment to a frozen instance."""


class _Field:
    """How one field is made, where that is not by a plain default."""

    __slots__ = ("compare", "default", "factory", "repr")

    def __init__(self, default: Any, factory: Any, compare: bool, repr: bool) -> None:  # noqa: A002 - as dataclasses
        self.default = default
        self.factory = factory
        self.compare = compare
        self.repr = repr


class _AsDataclass:
    """`__dataclass_fields__` of a record, made when somebody asks."""

    def __get__(self, instance: object, owner: type) -> dict[str, Any]:
        import dataclasses

        made = [(name, object, _standard(dataclasses.field, one)) for name, one in getattr(owner, FIELDS).items()]
        twin: Any = dataclasses.make_dataclass(owner.__name__, made)
        return dict(twin.__dataclass_fields__)


_AS_DATACLASS = _AsDataclass()


def _standard(make: Callable[..., Any], one: _Field) -> Any:
    if one.factory is not MISSING:
        return make(default_factory=one.factory, compare=one.compare, repr=one.repr)
    given = {} if one.default is MISSING else {"default": one.default}
    return make(**given, compare=one.compare, repr=one.repr)


def field(*, default: Any = MISSING, default_factory: Any = MISSING, compare: bool = True, repr: bool = True) -> Any:  # noqa: A002
    """Declares a field as `dataclasses.field` does."""
    return _Field(default, default_factory, compare, repr)


@dataclass_transform(field_specifiers=(field,))
def dataclass(*, frozen: bool = False, slots: bool = False, eq: bool = True) -> Callable[[type[T]], type[T]]:
    """Makes a class a record as `dataclasses.dataclass` does; see the module for what is not there."""

    def decorate(cls: type[T]) -> type[T]:
        return _made(cls, frozen=frozen, slots=slots, eq=eq)

    return decorate


def replace(instance: T, /, **changes: Any) -> T:
    """Returns a copy with these fields changed, checked as a new one is."""
    fields = getattr(type(instance), FIELDS)
    values = {name: getattr(instance, name) for name in fields}
    return type(instance)(**(values | changes))


def _made(cls: type[T], *, frozen: bool, slots: bool, eq: bool) -> type[T]:
    fields: dict[str, _Field] = dict(getattr(cls, FIELDS, {}))
    own: list[str] = []
    for name, hint in cls.__dict__.get("__annotations__", {}).items():  # noqa: RUF063 - inspect is what we avoid
        if str(hint).startswith(("ClassVar", "typing.ClassVar")):
            continue
        own.append(name)
        default = cls.__dict__.get(name, MISSING)
        fields[name] = default if isinstance(default, _Field) else _Field(default, MISSING, compare=True, repr=True)
    members: dict[str, Any] = {FIELDS: fields, "__match_args__": tuple(fields), "__init__": _init(cls, fields, frozen)}
    members["__dataclass_fields__"] = _AS_DATACLASS
    if "__repr__" not in cls.__dict__:
        members["__repr__"] = _repr(tuple(name for name, made in fields.items() if made.repr))
    if eq and "__eq__" not in cls.__dict__:
        members |= _comparison(tuple(name for name, made in fields.items() if made.compare), frozen=frozen)
    if frozen:
        members |= {"__setattr__": _refuse_setting, "__delattr__": _refuse_deleting}
    return _with_slots(cls, members, own) if slots else _with(cls, members, own, fields)


def _with(cls: type[T], members: dict[str, Any], own: list[str], fields: dict[str, _Field]) -> type[T]:
    for name in own:
        # A plain default stays on the class, as with dataclasses; what a factory makes must not be found there.
        if isinstance(cls.__dict__.get(name), _Field):
            if fields[name].default is MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, fields[name].default)
    for name, member in members.items():
        setattr(cls, name, member)
    return cls


def _with_slots(cls: type[T], members: dict[str, Any], own: list[str]) -> type[T]:
    """Returns the class made again: slots cannot be added to one that is there."""
    left_out = {*own, "__dict__", "__weakref__"}
    body = {name: value for name, value in cls.__dict__.items() if name not in left_out} | members
    body["__slots__"] = tuple(own)
    # Frozen instances with slots have nothing that pickle and copy could restore by assignment.
    body["__getstate__"], body["__setstate__"] = _get_state, _set_state
    made: type[T] = type.__new__(type(cls), cls.__name__, cls.__bases__, body)
    for value in body.values():
        _rebind(getattr(value, "fget", value), cls, made)
    return made


def _rebind(function: Any, old: type, new: type) -> None:
    """Lets `super()` in a method find the class made again (Source: dataclasses, _update_func_cell_for__class__)."""
    for cell in getattr(function, "__closure__", None) or ():
        try:
            if cell.cell_contents is old:
                cell.cell_contents = new
        except ValueError:  # an empty cell
            continue


def _init(cls: type, fields: dict[str, _Field], frozen: bool) -> Any:
    """Returns an `__init__` that is compiled when the first instance is made: most classes of a run have none."""
    _check_order(cls, fields)

    def __init__(self: Any, *args: Any, **values: Any) -> None:  # noqa: N807
        made = _compiled_init(cls, fields, frozen)
        owner: Any
        for owner in type(self).__mro__:
            if owner.__dict__.get("__init__") is __init__:
                owner.__init__ = made
        made(self, *args, **values)

    return __init__


def _check_order(cls: type, fields: dict[str, _Field]) -> None:
    optional = False
    for name, made in fields.items():
        if made.default is not MISSING or made.factory is not MISSING:
            optional = True
        elif optional:
            raise TypeError(f"{cls.__name__}.{name}: a field without a default after one with")


def _compiled_init(cls: type, fields: dict[str, _Field], frozen: bool) -> Any:
    names: dict[str, Any] = {"MISSING": MISSING, "put": object.__setattr__}
    parameters, lines = [], []
    for name, made in fields.items():
        value = name
        if made.factory is not MISSING:
            names[f"_f_{name}"] = made.factory
            parameters.append(f"{name}=MISSING")
            value = f"_f_{name}() if {name} is MISSING else {name}"
        elif made.default is not MISSING:
            names[f"_d_{name}"] = made.default
            parameters.append(f"{name}=_d_{name}")
        else:
            parameters.append(name)
        lines.append(f"put(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    head = ", ".join(("self", *parameters))
    exec(f"def __init__({head}):\n  " + "\n  ".join(lines or ["pass"]), names)  # noqa: S102 - our own field names
    made_init = names["__init__"]
    made_init.__qualname__ = f"{cls.__qualname__}.__init__"
    return made_init


def _repr(shown: tuple[str, ...]) -> Any:
    def __repr__(self: Any) -> str:  # noqa: N807
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    return __repr__


def _comparison(compared: tuple[str, ...], *, frozen: bool) -> dict[str, Any]:
    def __eq__(self: Any, other: object) -> Any:  # noqa: N807
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in compared)

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(tuple(getattr(self, name) for name in compared))

    return {"__eq__": __eq__, "__hash__": __hash__ if frozen else None}


def _refuse_setting(self: Any, name: str, value: object) -> None:  # noqa: ARG001
    raise FrozenError(f"cannot assign to field {name!r}")


def _refuse_deleting(self: Any, name: str) -> None:  # noqa: ARG001
    raise FrozenError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in getattr(type(self), FIELDS)]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(getattr(type(self), FIELDS), state, strict=True):
        object.__setattr__(self, name, value)
