"""Reaction networks as text: the round trip, and a clear line for everything that can be written wrongly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuralmjp import InputError
from neuralmjp.systems import lotka_volterra, named, parse_network, read_network

LOTKA_VOLTERRA = """
    # prey and predators
    prey -> 2 prey                          @ alpha = 5e-4
    prey + predator -> predator             @ beta  = 1e-4   # eaten
    prey + predator -> prey + 2 predator    @ delta=1e-4
    predator -> 0                           @ gamma = 5e-4

    box prey 59
    box predator 59
    start prey 5..20
    start predator 5..20
    births-at-zero 1e-6
    noise gaussian 1.0
    duration 1500
"""
DEATH = "X -> 0 @ d = 0.1"


def test_text_makes_the_same_network_as_python():
    assert parse_network(LOTKA_VOLTERRA, name="lotka-volterra") == lotka_volterra()


def test_file(tmp_path):
    path = tmp_path / "lotka-volterra.txt"
    path.write_text(LOTKA_VOLTERRA)
    assert read_network(path) == lotka_volterra()
    assert named(str(path)) == lotka_volterra()


def test_everything_that_may_be_left_out():
    network = parse_network("X + X -> Y @ c = 2\nY -> 2 X @ c\nbox Y 4")
    assert network.species == ("X", "Y")
    assert network.reactions[0].consumed == {"X": 2}
    assert network.parameters == {"c": 2.0}
    assert (network.largest, network.start) == ((59, 4), ((10, 10), (4, 4)))
    assert (network.births_at_zero, network.noise, network.noise_scale) == (0, "gaussian", 1)
    assert (network.duration, network.time_unit) == (100, "time unit")


def test_settings():
    network = parse_network(f"{DEATH}\nnoise two-sided-exponential 2.5\nunit day\nduration 3\nstart X 7")
    assert (network.noise, network.noise_scale, network.time_unit) == ("two-sided-exponential", 2.5, "day")
    assert (network.duration, network.start) == (3, ((7, 7),))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("X -> 2 X", "cannot read 'X -> 2 X' as"),
        ("X -> 2 X @ 0.5", "cannot read"),
        ("X -> 2 X @ a = much", "could not convert string to float: 'much'"),
        ("X -> 2 X @ a = 1 2", "cannot read"),
        ("X -> X -> X @ a = 1", "cannot read 'X -> X'"),
        ("X -> 2X @ a = 1", "cannot read '2X': write a species, '2 X' for two of it, or 0 for nothing"),
        ("X + -> 0 @ a = 1", "cannot read ''"),
        ("-> X @ a = 1", "cannot read ''"),
        ("X -> 0 @ d = 0.2", "'d' has a value already; give it once"),
        ("bix X 5", "expected a reaction, or one of: box SPECIES N"),
        ("box X", "expected a reaction"),
        ("box X many", "'many' is no whole number"),
        ("box X -1", "'-1' is no whole number"),
        ("start X 5..", "'5..' is no whole number and no range"),
        ("start X 1..2..3", "'1..2..3' is no whole number and no range"),
        ("births-at-zero few", "could not convert string to float: 'few'"),
        ("duration long", "could not convert string to float: 'long'"),
        ("noise pink", "noise must be one of none, gaussian, poisson, binomial, two-sided-exponential, got 'pink'"),
        ("noise gaussian loud", "could not convert string to float: 'loud'"),
        ("noise gaussian 1 2", "expected a reaction"),
        ("unit", "expected a reaction"),
    ],
)
def test_errors_name_file_and_line(line, message):
    with pytest.raises(InputError) as raised:
        parse_network(f"# a comment\n{DEATH}\n\n{line}\n", where="my.network")
    assert str(raised.value).startswith("my.network, line 4: ")
    assert message in str(raised.value)


def test_a_setting_given_twice():
    with pytest.raises(InputError, match="net, line 3: 'box X' is set already"):
        parse_network(f"{DEATH}\nbox X 5\nbox X 9", where="net")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# nothing", "no reactions"),
        ("0 -> 0 @ k = 1", "no species"),
        (f"{DEATH}\nbox Z 5", "'box Z' names a species that no reaction has"),
        (f"{DEATH}\nstart Z 5", "'start Z' names a species that no reaction has"),
        ("X -> 0 @ d", "no value is given for the rate constant 'd'"),
        ("X -> 0 @ d = -1", "d must not be negative, got -1.0"),
        (f"{DEATH}\nstart X 5..2", r"X must start inside its box 0..59, got 5..2"),
        (f"{DEATH}\nbox X 5\nstart X 6", r"X must start inside its box 0..5, got 6..6"),
        (f"{DEATH}\nbirths-at-zero -1", "births_at_zero must not be negative"),
        (f"{DEATH}\nnoise gaussian nan", "noise_scale must not be negative"),
    ],
)
def test_networks_that_make_no_sense_name_the_file(text, message):
    with pytest.raises(InputError) as raised:
        parse_network(text, where="my.network")
    assert str(raised.value).startswith("my.network: ")
    assert message in str(raised.value)


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"], ids=["missing", "binary"])
def test_files_that_cannot_be_read(tmp_path, content):
    path = tmp_path / "a.network"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"cannot read the reaction network .*a\.network"):
        read_network(path)


def test_a_directory_is_no_network(tmp_path):
    with pytest.raises(InputError, match="cannot read the reaction network"):
        read_network(tmp_path)


def test_unknown_names_list_the_known_ones():
    with pytest.raises(InputError, match="no system 'ratchet'; there are flashing-ratchet, lotka-volterra, two-mode"):
        named("ratchet")


WORDS = ["X", "Y", "0", "2", "->", "@", "=", "+", "a", "1e-3", "nan", "-1", "box", "start", "5..7"]


@given(st.lists(st.sampled_from([*WORDS, "\n"]), max_size=25).map(" ".join) | st.text(max_size=40))
def test_any_text_is_a_network_or_a_clear_error(text):
    try:
        outcome = f"my.network: {len(parse_network(text, where='my.network').reactions)} reactions"
    except InputError as error:
        outcome = str(error)
    assert outcome.startswith(("my.network, line ", "my.network: "))
