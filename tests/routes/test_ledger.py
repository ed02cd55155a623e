"""The ledger's text: versions, foreign entries, sizes, the Go plugin's old keys (decisions D5, D8, D30)."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import header_steps, json_values, mirror_steps

from rollouts_gwapi_plugin.errors import LedgerError
from rollouts_gwapi_plugin.model.rollout import SetHeaderRoute, SetMirrorRoute
from rollouts_gwapi_plugin.routes.ledger import MAX_DATA_BYTES, Ledger, parse_ledger
from rollouts_gwapi_plugin.routes.record import ManagedRecord, RouteRecord, RuleMark

ROLLOUT, WHERE = "shop/web", "ConfigMap shop/x"
HEADERS, MIRRORS = "httpManagedHeaderRoutes", "httpManagedMirrorRoutes"
EXPERIMENTS, OLD = "httpExperimentBackends", "httpManagedRoutes"
HEADER = ManagedRecord((RuleMark("r1", ("p1",)),))
RECORD = RouteRecord(headers={"r1": HEADER})


def text_of(version: Any = 1, **rollouts: Any) -> str:
    """Make a key's value."""
    return json.dumps({"version": version, "rollouts": rollouts})


marks = st.lists(
    st.builds(RuleMark, st.sampled_from(["a", "a-1"]), st.tuples(st.sampled_from(["p", "q"]))),
    min_size=1,
    max_size=2,
    unique_by=lambda mark: mark.name,
).map(tuple)
headers = st.dictionaries(
    st.sampled_from(["h", "Ü"]),
    st.builds(ManagedRecord, marks, st.none() | st.builds(SetHeaderRoute.model_validate, header_steps("h"))),
    max_size=2,
)
mirrors = st.dictionaries(
    st.just("m"),
    st.builds(
        ManagedRecord, marks, st.none() | st.builds(SetMirrorRoute.model_validate, mirror_steps("m", "HTTPRoute"))
    ),
)
identities = st.lists(
    st.tuples(st.just(""), st.just("Service"), st.just("shop"), st.text(max_size=4)), max_size=2, unique=True
)
records = st.builds(RouteRecord, headers, mirrors, identities.map(tuple))


@settings(max_examples=100)
@given(first=records, second=records)
def test_what_is_written_is_read_again(first: RouteRecord, second: RouteRecord) -> None:
    """Records of two routes and two Rollouts come back as they were, steps included."""
    data: dict[str, str] = {}
    for rollout, route, record in ((ROLLOUT, "a", first), (ROLLOUT, "b", second), ("shop/other", "a", second)):
        ledger = parse_ledger(data, "http", WHERE).with_record(rollout, f"uid of {rollout}", route, record)
        data = ledger.write(data, rollout, WHERE)
    ledger = parse_ledger(data, "http", WHERE)

    assert first == ledger.view(ROLLOUT, "a").record
    assert second == ledger.view(ROLLOUT, "b").record == ledger.view("shop/other", "a").record
    assert {"a" for _ in [0] if not first.empty} | {"b" for _ in [0] if not second.empty} == set(
        ledger.routes_of(ROLLOUT)
    )


@settings(max_examples=100)
@given(first=records, second=records)
def test_union_recognises_both_and_minus_takes_away(first: RouteRecord, second: RouteRecord) -> None:
    """While a change is under way old and new are on record; nothing of a record is left without itself (D6)."""
    both = first.union(second)

    assert both.union(second) == both
    assert first.minus(first).empty
    assert both.minus(second).union(second).union(first).experiments == tuple(
        dict.fromkeys(both.minus(second).experiments + second.experiments + first.experiments)
    )
    for record in (first, second):
        for name, managed in record.headers.items():
            prints = {mark.name: set(mark.fingerprints) for mark in both.headers[name].rules}
            assert all(set(mark.fingerprints) <= prints[mark.name] for mark in managed.rules)


def test_the_step_of_a_union_is_the_newer_one() -> None:
    """The record says what the rule is to be made from."""
    old, new = (SetHeaderRoute.model_validate({"name": name}) for name in ("old", "new"))
    record = ManagedRecord((), old)

    assert record.union(ManagedRecord((), new)).step is new
    assert record.union(ManagedRecord(())).step is old


def test_an_empty_ledger_leaves_no_key() -> None:
    """After the last record is gone the data is what it was before the first."""
    data = {"foreign": "1"}
    written = parse_ledger(data, "http", WHERE).with_record(ROLLOUT, "u", "web", RECORD).write(data, ROLLOUT, WHERE)
    ledger = parse_ledger(written, "http", WHERE).with_record(ROLLOUT, "u", "web", RouteRecord())

    assert {"foreign", HEADERS} == set(written)
    assert data == ledger.write(written, ROLLOUT, WHERE)


def test_what_others_wrote_stays_as_it_is() -> None:
    """Other Rollouts' entries, unknown fields beside and inside them, and other kinds' keys."""
    other = {"uid": "o", "future": [1], "routes": {"web": {"x": {"rules": [{"name": "x", "fingerprints": []}]}}}}
    value = json.dumps({"version": 1, "future": {"a": 1}, "rollouts": {"shop/other": other}})
    data = {HEADERS: value, "grpcManagedHeaderRoutes": "{", "httpManagedMirrorRoutes": text_of()}
    ledger = parse_ledger(data, "http", WHERE).with_record(ROLLOUT, "u", "web", RECORD)
    written = ledger.write(data, ROLLOUT, WHERE)
    after = json.loads(written[HEADERS])

    assert {"a": 1} == after["future"]
    assert other == after["rollouts"]["shop/other"]
    assert ROLLOUT in after["rollouts"]
    assert data["grpcManagedHeaderRoutes"] == written["grpcManagedHeaderRoutes"]
    assert data[MIRRORS] == written[MIRRORS]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "1",
        "null",
        "[" * 100_000,
        "{}",
        '{"version": 1}',
        '{"rollouts": {}}',
        text_of("1"),
        text_of(True),
        text_of(None),
        text_of(a=1),
        text_of(a={}),
        text_of(a={"routes": []}),
        text_of(a={"routes": {"web": 1}}),
        text_of(a={"routes": {"web": {"r1": {}}}}),
        text_of(a={"routes": {"web": {"r1": {"rules": [{"name": "x"}]}}}}),
        text_of(a={"routes": {"web": {"r1": {"rules": [], "step": 5}}}}),
    ],
)
def test_a_broken_value_names_config_map_and_key(text: str) -> None:
    """It is told what is wrong, that nothing is touched, and what to do."""
    with pytest.raises(LedgerError) as raised:
        parse_ledger({HEADERS: text}, "http", WHERE)

    assert f"{WHERE}, key {HEADERS} can't be read" in str(raised.value)
    assert "Repair or remove the key" in str(raised.value)


@pytest.mark.parametrize("part", [5, [["", "Service", "shop"]], [1]])
def test_a_broken_list_of_experiments_is_an_error(part: Any) -> None:
    """Each entry is group, kind, namespace and name."""
    with pytest.raises(LedgerError, match=EXPERIMENTS):
        parse_ledger({EXPERIMENTS: text_of(a={"routes": {"web": part}})}, "http", WHERE)


def test_a_newer_version_is_left_to_the_newer_plugin() -> None:
    """The text says which version it is, and which this program knows."""
    with pytest.raises(LedgerError, match=r"has version 2, this plugin reads up to 1.*Update the plugin"):
        parse_ledger({MIRRORS: text_of(2)}, "http", WHERE)


@settings(max_examples=100)
@given(value=json_values | st.text())
def test_any_value_is_read_or_a_ledger_error(value: Any) -> None:
    """Whatever somebody put there, no other exception comes of it."""
    text = value if isinstance(value, str) else json.dumps(value)
    try:
        ledger = parse_ledger({HEADERS: text, OLD: text}, "http", WHERE)
    except LedgerError:
        return
    ledger.with_record(ROLLOUT, "u", "web", RECORD).write({HEADERS: text, OLD: text}, ROLLOUT, WHERE)


def test_half_a_surrogate_stays_the_escape_that_it_was() -> None:
    """What UTF-8 can't spell, in another Rollout's entry or an old one, is written again as it was read."""
    entry, old = r'"x\ud800":{"routes":{},"uid":"\ude00\ud83d"}', r'"r1":{"\udcff":2}'
    data = {HEADERS: f'{{"version":1,"rollouts":{{{entry}}}}}', OLD: f'{{{old},"r2":{{"web":1}}}}'}
    ledger = parse_ledger(data, "http", WHERE).with_record(ROLLOUT, "u", "web", RECORD)
    written = ledger.without_legacy(frozenset({"r2"}), "web").write(data, ROLLOUT, WHERE)

    assert entry in written[HEADERS]
    assert written[OLD] == f"{{{old}}}"


def test_a_config_map_that_would_be_too_large_is_refused() -> None:
    """Before the write, with size, limit and way out."""
    data = {"foreign": "x" * (MAX_DATA_BYTES - 100)}
    ledger = parse_ledger(data, "http", WHERE).with_record(ROLLOUT, "u", "web", RECORD)

    with pytest.raises(LedgerError, match=rf"{WHERE}: .* bytes, a ConfigMap holds {MAX_DATA_BYTES}; give some"):
        ledger.write(data, ROLLOUT, WHERE)


def test_half_of_a_surrogate_pair_in_a_foreign_value_is_kept() -> None:
    """JSON can spell it, UTF-8 can't: it is counted and stays as it is."""
    data = {"foreign": "\ud800"}
    ledger = parse_ledger(data, "http", WHERE).with_record(ROLLOUT, "u", "web", RECORD)

    assert ledger.write(data, ROLLOUT, WHERE)["foreign"] == "\ud800"


def test_a_rollout_is_known_by_its_managed_routes() -> None:
    """A record of experiments says nothing of rules: those of the Go plugin are still found by name (D7)."""
    experiments = RouteRecord(experiments=(("", "Service", "shop", "b"),))
    ledger = Ledger("http").with_record(ROLLOUT, "u", "web", experiments)

    assert not ledger.view(ROLLOUT, "web").known
    assert ledger.with_record(ROLLOUT, "u", "other", RECORD).view(ROLLOUT, "web").known
    assert not ledger.with_record(ROLLOUT, "u", "other", RECORD).view("shop/other", "web").known


def test_foreign_marks_are_those_of_others_on_the_same_route() -> None:
    """Header and mirror rules alike."""
    record = RouteRecord(headers={"r1": HEADER}, mirrors={"m": ManagedRecord((RuleMark("m", ("p2",)),))})
    ledger = Ledger("http").with_record("shop/other", "u", "web", record)

    assert {"r1", "m"} == {mark.name for mark in ledger.view(ROLLOUT, "web").foreign}
    assert () == ledger.view(ROLLOUT, "elsewhere").foreign
    assert () == ledger.view("shop/other", "web").foreign


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ('{"r1": {"web": 2, "other": 1}, "r2": {"other": 3}}', {"r1": 2}),
        # Version 0.1 knew one route and did not name it.
        ('{"r1": 2}', {"r1": 2}),
        ('{"r1": {"web": true}, "r2": true, "r3": "2", "r4": null, "r5": {"web": "1"}, "r6": 1.5}', {}),
        ("", {}),
        ("{", {}),
        ("[1]", {}),
        ("[" * 100_000, {}),
    ],
)
def test_the_go_plugins_old_entries_are_read_where_they_are_entries(text: str, seen: dict[str, int]) -> None:
    """Broken or strange, they are years old and nobody's trouble (D30)."""
    assert seen == dict(parse_ledger({OLD: text}, "http", WHERE).view(ROLLOUT, "web").legacy)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ('{"r1":{"web":2,"other":1},"r2":{"web":3}}', {"r1": {"other": 1}, "r2": {"web": 3}}),
        ('{"r1":2,"r2":3}', {"r2": 3}),
        ('{"r1":{"web":2}}', None),
    ],
)
def test_old_entries_that_are_done_with_are_dropped_alone(text: str, rest: Any) -> None:
    """Those of other managed routes and of other routes stay; an empty key goes."""
    data = {OLD: text}
    ledger = parse_ledger(data, "http", WHERE).without_legacy(frozenset({"r1"}), "web")
    written = ledger.write(data, ROLLOUT, WHERE)

    assert rest == (json.loads(written[OLD]) if OLD in written else None)


def test_old_entries_that_are_not_touched_stay_byte_for_byte() -> None:
    """Also what can't be read in them, and kinds that never had any have no such key."""
    data = {OLD: '{ "r1" : {"web": 2}, "x": "?" }', "tcpManagedRoutes": "{"}
    for family in ("http", "tcp"):
        assert data == parse_ledger(data, family, WHERE).write(data, ROLLOUT, WHERE)
