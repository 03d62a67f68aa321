"""Options: one declaration, from which signature, checks, refusals and native settings follow; and secrets that nothing shows."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import io
import json
import pickle
import pprint
import pydoc
import traceback
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest

import pushdown
from pushdown import (
    IO,
    Column,
    ConfigError,
    Credentials,
    Plan,
    Reader,
    Sampling,
    Store,
    TableReader,
    ValueCache,
    options,
)
from pushdown._settings import SourceKind
from pushdown.options import Options
from pushdown.store import Connection, ConnectionOptions
from readers import URL, reader

ACCESS, SECRET, TOKEN = "AKIATHEACCESSKEY", "the-secret-key", "the-session-token"
GROUPS: dict[str, Any] = {
    "sampling": Sampling,
    "store": Store,
    "plan": Plan,
    "io": IO,
    "value_cache": ValueCache,
}
READERS: list[tuple[SourceKind, Any, Any]] = [
    (SourceKind.OBJECTS, Reader, options.ReaderOptions),
    (SourceKind.TABLE, TableReader, options.TableOptions),
]
SOURCES: list[tuple[SourceKind, Any, Any]] = [
    (SourceKind.OBJECTS, Reader, URL),
    (SourceKind.SHARDS, Reader, "s3://photos/train-{0..4}.tar"),
    (SourceKind.ROWS, Reader, "s3://photos/data/*.parquet"),
    (SourceKind.TABLE, TableReader, URL),
]
CALLS: list[Any] = [
    pushdown.get,
    pushdown.get_many,
    pushdown.read_table,
    pushdown.list,
    pushdown.index,
    pushdown.explain,
    pushdown.check,
]


def applying(kind: SourceKind) -> list[str]:
    """The options that are declared for a source."""
    declared = sorted(
        ((field.name, field.metadata["pushdown"]) for field in dataclasses.fields(Options)),
        key=lambda each: each[1].group is not None,
    )
    return [name for name, setting in declared if setting.limits.get(kind, ...) is not None]


@pytest.mark.parametrize(("kind", "reader_class", "typed"), READERS)
def test_the_typed_arguments_of_a_reader_are_those_that_are_declared(
    kind: SourceKind, reader_class: Any, typed: Any
) -> None:
    assert sorted(typed.__annotations__ | ConnectionOptions.__annotations__) == sorted(applying(kind))
    parameters = inspect.signature(reader_class).parameters
    shown = [name for name, each in parameters.items() if each.kind is each.KEYWORD_ONLY]
    assert shown == applying(kind)
    assert list(parameters) == ["source", "pipeline", *shown]
    for field in dataclasses.fields(Options):
        if field.name in shown:
            assert parameters[field.name].default is field.default
    assert "seed: 'int | None' = None" in pydoc.plain(pydoc.render_doc(reader_class))


def test_types_are_those_of_the_declaration() -> None:
    declared, typed = get_type_hints(Options), get_type_hints(options.ReaderOptions)
    assert {name: str(declared[name]) for name in typed} == {name: str(typed[name]) for name in typed}
    assert get_type_hints(ConnectionOptions) == get_type_hints(Connection)


@pytest.mark.parametrize("call", CALLS)
def test_every_call_takes_a_store(call: Any) -> None:
    assert inspect.signature(call).parameters["store"].default == Store()
    positional = (["decode"] if call is pushdown.check else [URL, "decode"])[: 1 if call is pushdown.list else 2]
    arguments: Any = {"endpoint": "http://gateway:9900"}
    with pytest.raises(TypeError, match=r"endpoint is now part of store=: pushdown\.Store\(endpoint=\.\.\)"):
        call(*positional, **arguments)
    arguments = {"store": "http://gateway:9900"}
    with pytest.raises(ConfigError, match=r"invalid store: expected pushdown\.Store, found str"):
        call(*positional, **arguments)


@pytest.mark.parametrize("call", CALLS)
def test_every_call_takes_a_gateway(call: Any) -> None:
    assert inspect.signature(call).parameters["gateway"].default is None


def test_several_gateways_are_replicas() -> None:
    urls = ["http://a:9900", "http://b:9900"]
    assert Connection(gateway=urls).native()["gateway"] == "http://a:9900,http://b:9900"
    assert Connection(gateway=()).native()["gateway"] == ""
    with pytest.raises(ConfigError, match=r"invalid gateway: expected a str, a sequence of str, or None, found int"):
        Connection(gateway=7)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="expected a str, a sequence of str"):
        Connection(gateway=["http://a:9900", None])  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="found a user name or password"):
        Connection(gateway=["http://a:9900", "http://user:secret@b:9900"])


def test_a_gateway_is_part_of_the_native_settings_of_the_store() -> None:
    store, gateway = Store(endpoint="http://store:9000", addressing_style="path"), "http://gateway:9900"
    expected = {"gateway": gateway, "endpoint": "http://store:9000", "addressing_style": "path"}
    assert json.loads(Connection(store=store, gateway=gateway).to_json()) == expected
    assert json.loads(Connection().to_json()) == {}
    given = {"store": store, "gateway": gateway}
    assert Options.of(given).applied_to(SourceKind.OBJECTS).native()["store"] == expected
    for wrong, found in ((5, "expected a str, a sequence of str, or None, found int"), (f"http://{ACCESS}:{SECRET}@gateway", "found a user name")):
        with pytest.raises(ConfigError, match=f"invalid gateway: .*{found}") as error:
            Connection(gateway=wrong)  # type: ignore[arg-type]
        assert SECRET not in str(error.value)
    with pytest.raises(ConfigError, match="expected one of auto, path, virtual"):
        Store(addressing_style="host")  # type: ignore[arg-type]


@pytest.mark.parametrize("group", GROUPS.values())
def test_groups_are_frozen_have_names_and_describe_each_member(group: Any) -> None:
    arguments = {"path": "folder"} if group is ValueCache else {}
    made = group(**arguments)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(made, dataclasses.fields(group)[0].name, None)
    with pytest.raises(TypeError):
        group("by position")
    for field in dataclasses.fields(group):
        assert f"`{field.name}`" in group.__doc__, field.name
    assert made == group(**arguments)
    assert pickle.loads(pickle.dumps(made)) == made


def test_the_documentation_of_readers_has_each_option() -> None:
    for field in dataclasses.fields(Options):
        assert f"`{field.name}`" in str(Reader.__doc__), field.name


def test_a_group_shows_what_is_set() -> None:
    assert repr(Sampling()) == "Sampling()"
    assert repr(Sampling(tail="pad", rank=1, world=2)) == "Sampling(tail='pad', rank=1, world=2)"
    assert repr(ValueCache(path="folder")) == "ValueCache(path='folder')"
    assert repr(Store(endpoint="http://h:1")) == "Store(endpoint='http://h:1')"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Sampling(tail="odd"), "invalid tail: expected one of short, even, drop, pad, found 'odd'"),  # type: ignore[arg-type]
        (lambda: Sampling(buffer=0), "invalid buffer: expected a whole number of at least 1, found 0"),
        (lambda: Sampling(include_hidden=1), "invalid include_hidden: expected True or False, found int"),  # type: ignore[arg-type]
        (lambda: Plan(split="half"), "invalid split: expected smallest, full or a number of steps, found 'half'"),
        (lambda: Plan(max_expand=-1.0), "invalid max_expand: expected a finite factor of at least 0, found -1.0"),
        (lambda: Plan(max_expand=float("inf")), "invalid max_expand: expected a finite factor of at least 0, found inf"),
        (lambda: Plan(epochs=None), "invalid epochs: expected a whole number of at least 1, found None"),
        (lambda: IO(requests=None), "invalid requests: expected a whole number of at least 1, found None"),
        (lambda: IO(prefetch="9" * 400 + " GB"), "invalid prefetch: expected a number of bytes or text such as `256 MiB`, found '9999"),
        (lambda: ValueCache(path=None), "invalid value_cache: expected a path, found None"),
        (lambda: Plan(compression="gzip"), "invalid compression: expected one of none, lz4, zstd"),  # type: ignore[arg-type]
        (lambda: Plan(models=5), "invalid models: expected a path, found int"),  # type: ignore[arg-type]
        (lambda: IO(prefetch="many"), "invalid prefetch: expected a number of bytes or text"),
        (lambda: IO(prefetch=-1), "invalid prefetch: expected a whole number of at least 0"),
        (lambda: IO(threads=0), "invalid threads: expected a whole number of at least 1, found 0"),
        (lambda: ValueCache(path="f", bytes="1 XB"), "invalid bytes: expected a number of bytes or text"),
        (lambda: Store(endpoint=5), "invalid endpoint: expected a str or None, found int"),  # type: ignore[arg-type]
        (lambda: Store(retry=3), r"invalid retry: expected pushdown\.Retry, found int"),  # type: ignore[arg-type]
        (lambda: reader(mode="fast"), "invalid mode: expected one of auto, pushdown, plain, found 'fast'"),
        (lambda: reader(batch_size=True), "invalid batch_size: expected a whole number of at least 1"),
        (lambda: reader(sampling={"rank": 1}), r"invalid sampling: expected pushdown\.Sampling, found dict"),
        (lambda: reader(plan=None), r"invalid plan: expected pushdown\.Plan, found NoneType"),
    ],
)
def test_values_are_checked_when_they_are_given(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


MOVED = [
    (member.metadata["pushdown"].former or member.name, option, group, member.name)
    for option, group in GROUPS.items()
    for member in dataclasses.fields(group)
    if "pushdown" in member.metadata
]


@pytest.mark.parametrize(("former", "option", "group", "member"), MOVED)
def test_an_argument_that_moved_names_its_group(former: str, option: str, group: Any, member: str) -> None:
    for _, make, source in SOURCES:
        arguments: Any = {former: "value"}
        with pytest.raises(TypeError) as raised:
            make(source, "decode", **arguments)
        expected = f"{former} is now part of {option}=: pushdown.{group.__name__}({member}=..)"
        assert str(raised.value) == expected


def test_the_arguments_of_the_last_release_have_moved() -> None:
    former = "endpoint region profile credentials timeouts retry order buffer tail rank world limit include_hidden split max_expand epochs"
    former += " compression models prefetch requests gets threads value_cache_bytes"
    # Members that are newer were never arguments.
    newer = ["addressing_style", "hosts_file"]
    assert sorted(name for name, *_ in MOVED) == sorted([*former.split(), *newer])
    arguments: Any = {"nonsense": 1}
    with pytest.raises(TypeError, match="unexpected argument nonsense: expected one of gateway, index, column, columns, batch_size"):
        Reader(URL, "decode", **arguments)


ROWS_TAIL = r'tail="pad" does not apply to {}: expected "short", "even" or "drop"'


@pytest.mark.parametrize(
    ("given", "kinds", "message"),
    [
        ({"sampling": Sampling(tail="pad")}, "ROWS TABLE", ROWS_TAIL),
        ({"sampling": Sampling(tail="even")}, "SHARDS", 'tail="even" does not apply to {}: expected "short"'),
        ({"sampling": Sampling(order="shards")}, "ROWS TABLE", 'order="shards" does not apply to {}: expected "global"'),
        ({"sampling": Sampling(order="global")}, "SHARDS", 'order="global" does not apply to {}: expected "shards"'),
        ({"sampling": Sampling(buffer=9)}, "OBJECTS ROWS TABLE", "buffer=9 does not apply to {}: expected 1000, the default"),
        ({"sampling": Sampling(limit=9)}, "SHARDS", "limit=9 does not apply to {}: expected none"),
        (
            {"sampling": Sampling(include_hidden=True)},
            "SHARDS ROWS",
            "include_hidden=True does not apply to {}: expected False, the default",
        ),
        ({"plan": Plan(epochs=3)}, "SHARDS ROWS TABLE", "epochs=3 does not apply to {}: expected 1, the default"),
        ({"plan": Plan(split=1)}, "SHARDS", 'split=1 does not apply to {}: expected "smallest", the default'),
        ({"plan": Plan(max_expand=2.0)}, "SHARDS ROWS TABLE", "max_expand=2.0 does not apply to {}: expected 1.0, the default"),
        ({"plan": Plan(compression="lz4")}, "SHARDS", 'compression="lz4" does not apply to {}: expected "none", the default'),
        ({"io": IO(gets=9)}, "SHARDS", "gets=9 does not apply to {}: expected 32, the default"),
        ({"mode": "pushdown"}, "SHARDS", 'mode="pushdown" does not apply to {}: expected "auto" or "plain"'),
        ({"index": "a.parquet"}, "SHARDS ROWS TABLE", 'index="a.parquet" does not apply to {}: expected none'),
        ({"column": "jpg"}, "ROWS TABLE", 'column="jpg" does not apply to {}: expected none'),
        ({"columns": ["cls"]}, "ROWS TABLE", "columns=['cls'] does not apply to {}: expected none"),
        ({"on_error": "skip"}, "TABLE", 'on_error="skip" does not apply to {}: expected "raise", the default'),
        ({"max_errors": 3}, "TABLE", "max_errors=3 does not apply to {}: expected none"),
        ({"labels": [1]}, "TABLE", "labels=[1] does not apply to {}: expected none"),
        ({"labels": [1]}, "ROWS", "labels=[1] does not apply to {}: expected the name of a column"),
        ({"labels": "dir"}, "SHARDS", 'labels="dir" does not apply to {}: expected a pushdown.Column; other labels need an index'),
        ({"value_cache": "folder"}, "SHARDS ROWS TABLE", "value_cache=ValueCache(path='folder') does not apply to {}: expected none"),
    ],
)
def test_an_option_that_does_not_apply_is_refused_in_one_form(given: Any, kinds: str, message: str) -> None:
    for kind, reader_class, source in SOURCES:
        if kind.name in kinds.split():
            with pytest.raises(ConfigError) as raised:
                Options.of(given).applied_to(kind)
            assert str(raised.value).startswith(message.format(kind.value))
            # With an index these are members of shards that have one.
            if kind is not SourceKind.SHARDS or "index" not in given:
                with pytest.raises(ConfigError) as raised:
                    reader_class(source, "decode", **given)
                assert str(raised.value).startswith(message.format(kind.value))
        elif kind is SourceKind.OBJECTS:
            Options.of(given).applied_to(kind)


@pytest.mark.parametrize("order", [None, "global"])
def test_a_buffer_is_refused_without_the_order_that_has_one(order: Any) -> None:
    expected = r'^buffer=9 does not apply to objects: expected 1000, the default, or order="shards"$'
    with pytest.raises(ConfigError, match=expected):
        Reader(URL, "decode", sampling=Sampling(order=order, buffer=9))


def test_what_applies_is_accepted() -> None:
    by_shards = Sampling(order="shards", tail="short")
    given = {"sampling": by_shards, "mode": "plain", "labels": Column("cls")}
    shards = Options.of(given).applied_to(SourceKind.SHARDS)
    assert (shards.sampling.order, shards.sampling.tail) == ("shards", "short")
    rows = Options.of({"sampling": Sampling(tail="drop"), "labels": "label"}).applied_to(SourceKind.ROWS)
    assert (rows.sampling.order, rows.sampling.tail) == ("global", "drop")
    for kind, sampling in [
        (SourceKind.OBJECTS, Sampling(order="shards", buffer=9)),
        (SourceKind.SHARDS, Sampling(buffer=9)),
    ]:
        assert Options.of({"sampling": sampling}).applied_to(kind).sampling.buffer == 9
    assert Options.of({}).applied_to(SourceKind.SHARDS).sampling.tail == "short"
    assert Options.of({}).applied_to(SourceKind.TABLE).sampling.tail == "even"


def test_the_native_settings_of_the_defaults_are_those_of_the_signature() -> None:
    native = Options.of({}).applied_to(SourceKind.OBJECTS).native()
    assert {name: value for name, value in native.items() if value is not None} == {
        "store": {},
        "batch_size": 64,
        "epoch": 0,
        "shuffle": True,
        "mode": "auto",
        "order": "global",
        "tail": "even",
        "split": "smallest",
        "max_expand": 1.0,
        "epochs": 1,
        "compression": "none",
        "prefetch_bytes": 256 << 20,
        "requests": 4,
        "gets": 32,
    }
    cached = Options.of({"value_cache": ValueCache(path="/c", bytes="1 KiB")}).applied_to(SourceKind.OBJECTS).native()
    assert (cached["value_cache"], cached["value_cache_bytes"]) == ("/c", 1024)
    assert Options.of({"value_cache": "/c"}).applied_to(SourceKind.OBJECTS).native()["value_cache_bytes"] == 10 << 30


def secret_store() -> Store:
    return Store(endpoint="http://127.0.0.1:9", credentials=(ACCESS, SECRET, TOKEN))


def shown(value: object) -> str:
    """Everything that Python shows of a value."""
    stream = io.StringIO()
    pprint.pprint(value, stream=stream)
    return f"{value!r} {value!s} {value} {stream.getvalue()}"


def assert_hidden(text: str | bytes) -> None:
    found = text if isinstance(text, str) else text.decode("latin-1")
    assert not [secret for secret in (ACCESS, SECRET, TOKEN) if secret in found]


def test_no_text_of_a_store_has_its_secrets() -> None:
    for value in (secret_store(), Credentials(ACCESS, SECRET, TOKEN), Options(store=secret_store())):
        assert_hidden(shown(value))
    assert repr(secret_store()) == "Store(endpoint='http://127.0.0.1:9', credentials=Credentials(hidden))"
    assert_hidden(secret_store().native().__repr__())
    assert_hidden(Connection(store=secret_store()).to_json())


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_no_pickle_has_secrets(protocol: int) -> None:
    for value in (secret_store(), Credentials(ACCESS, SECRET, TOKEN), Options(store=secret_store())):
        pickled = pickle.dumps(value, protocol)
        assert_hidden(pickled)
    store = pickle.loads(pickle.dumps(secret_store(), protocol))
    connection = Connection(store=store)
    assert (store.endpoint, connection.keys, connection.has_lost_keys) == ("http://127.0.0.1:9", None, True)
    assert repr(store.credentials) == "Credentials(not passed on)"


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_no_copy_has_secrets(copied: Callable[[Any], Any]) -> None:
    store = copied(secret_store())
    assert Connection(store=store).keys is None
    assert store.endpoint == "http://127.0.0.1:9"
    assert copied(Credentials(ACCESS, SECRET)).keys is None
    data = reader(store=secret_store())
    assert copied(data)._options.keys is None
    assert data._options.keys == (ACCESS, SECRET, TOKEN)


def test_no_dictionary_of_a_store_has_secrets() -> None:
    for value in (dataclasses.asdict(secret_store()), dataclasses.astuple(secret_store()), vars(secret_store())):
        assert_hidden(shown(value))
    assert_hidden(json.dumps(dataclasses.asdict(secret_store()), default=str))
    assert_hidden(pickle.dumps(dataclasses.asdict(secret_store())))


def test_a_store_that_is_made_of_another_one_by_name_has_its_credentials() -> None:
    replaced = dataclasses.replace(secret_store(), region="eu-west-1")
    assert Connection(store=replaced).keys == (ACCESS, SECRET, TOKEN)


def test_no_state_and_no_pickled_reader_has_secrets() -> None:
    data = reader(store=secret_store())
    assert_hidden(json.dumps(data.state_dict()))
    assert_hidden(pickle.dumps(data))
    assert_hidden(shown(data))
    assert_hidden(shown(vars(data)))
    next(iter(data))
    assert_hidden(pickle.dumps(data))
    data.close()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Store(credentials=f"{ACCESS}:{SECRET}"),  # type: ignore[arg-type]
        lambda: Store(credentials=(ACCESS,)),  # type: ignore[arg-type]
        lambda: Store(credentials=(ACCESS, SECRET, TOKEN, SECRET)),  # type: ignore[arg-type]
        lambda: Store(credentials=(ACCESS, SECRET.encode())),  # type: ignore[arg-type]
        lambda: Store(credentials={"key": SECRET}),  # type: ignore[arg-type]
        lambda: Credentials(ACCESS, None),  # type: ignore[arg-type]
        lambda: Store(endpoint=f"http://{ACCESS}:{SECRET}@127.0.0.1:9"),
        lambda: Store(endpoint=f"{ACCESS}:{SECRET}@127.0.0.1:9"),
        lambda: Store(endpoint=f"http:/{ACCESS}:{SECRET}@127.0.0.1:9"),
        lambda: reader(store=(ACCESS, SECRET)),
        lambda: reader(credentials=(ACCESS, SECRET, TOKEN)),
        lambda: reader(store=secret_store(), sampling=Sampling(rank=2, world=2)),
        lambda: pushdown.get("s3://photos/bad", store=secret_store()),
        lambda: reader(store=secret_store()).load_state_dict(reader(seed=8).state_dict()),
    ],
)
def test_no_error_has_secrets(make: Callable[[], Any]) -> None:
    with pytest.raises((TypeError, pushdown.Error)) as raised:
        make()
    error = raised.value
    assert_hidden(f"{error} {error!r} {error.args} {getattr(error, '__notes__', '')}")
    assert_hidden(pickle.dumps(error))
    # Lines of this file apart, which name constants, a traceback has no values.
    assert_hidden("".join(traceback.format_exception(error)))


def test_credentials_reach_the_native_module(monkeypatch: pytest.MonkeyPatch, native: Any) -> None:
    given: list[Any] = []
    original = native.Reader.__init__

    def record(self: Any, spec: str, keys: Any, *others: Any, **named: Any) -> None:
        given.append(keys)
        assert_hidden(spec)
        original(self, spec, keys, *others, **named)

    monkeypatch.setattr(native.Reader, "__init__", record)
    for store in (secret_store(), Store(credentials=Credentials(ACCESS, SECRET, TOKEN)), Store()):
        data = reader(store=store)
        next(iter(data))
        data.close()
    assert given == [(ACCESS, SECRET, TOKEN), (ACCESS, SECRET, TOKEN), None]
    assert Connection(store=Store(credentials=(ACCESS, SECRET))).keys == (ACCESS, SECRET, None)
