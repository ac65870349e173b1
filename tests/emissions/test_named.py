"""Emissions by the names people type, and what the data say about them."""

import numpy as np
import pytest

from emissions.cases import CASES
from neuralmjp import InputError, TimeSeries
from neuralmjp.emissions import Categorical, GaussianMixture
from neuralmjp.emissions.named import NAMES, PLAIN, automatic, from_options, named_emission, options_of


def series(values):
    return TimeSeries.from_arrays(np.arange(float(len(values))), np.asarray(values, float))


LABELS = series([1, 2, 4, 2, 1, 4, np.nan])
SIGNAL = series([0.1, 0.7, 0.3, 0.2])


@pytest.mark.parametrize(
    ("data", "n_states", "name"), [(LABELS, 3, "categorical"), (LABELS, 2, "gaussian"), (SIGNAL, 4, "gaussian")]
)
def test_automatic_choice(data, n_states, name):
    assert automatic(data, n_states) == name
    assert named_emission("auto", data, n_states).name == name


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_known(name):
    assert named_emission(name, LABELS, 3).name == name


def test_as_many_labels_as_states_are_the_states():
    emission = named_emission("categorical", LABELS, 3)
    assert emission.labels == (1.0, 2.0, 4.0)
    assert emission.is_exact
    assert emission.named_states


def test_other_numbers_of_labels_are_readings_of_hidden_states():
    emission = named_emission("categorical", LABELS, 2)
    assert not emission.is_exact
    assert emission.readable.all()
    assert not emission.named_states


def test_states_that_share_a_label_are_hidden():
    emission = Categorical((0.0, 1.0), [[1, 0], [1, 0], [0, 1]])
    assert not emission.is_exact
    assert emission.named_states  # what a state can show tells it from others: its number has a meaning


def test_censored_labels_are_no_states():
    assert named_emission("categorical", LABELS, 2, ignore=(4.0,)).labels == (1.0, 2.0)


def test_table_of_misreadings():
    emission = named_emission("auto", LABELS, 3, misread=[[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    assert emission.readable.astype(int).tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]  # its own label always
    assert emission.named_states


@pytest.mark.parametrize(
    ("name", "data", "options", "message"),
    [
        ("gauss", SIGNAL, {}, "no emission 'gauss'; there are categorical, gaussian, gaussian-full"),
        ("poisson", SIGNAL, {"misread": np.eye(2)}, "misreadings is for categorical observations, not for poisson"),
        ("categorical", LABELS, {"misread": np.eye(2)}, "misreadings is 2 x 2, but there are 2 states and 3 labels"),
        ("categorical", series(np.arange(1001.0) / 7), {}, "holds 1001 different labels: is it a signal"),
        ("categorical", series(np.zeros((4, 2))), {}, "one column of labels, the data have 2"),
    ],
)
def test_errors(name, data, options, message):
    with pytest.raises(InputError, match=message):
        named_emission(name, data, 2, **options)


@pytest.mark.parametrize("name", [name for name in CASES if name != "custom"])
def test_options_make_the_same_emission_again(name):
    emission = CASES[name].emission
    again = from_options(emission.name, options_of(emission))
    assert again == emission
    assert hash(again) == hash(emission)


def test_choices_are_kept():
    assert from_options("mixture", options_of(GaussianMixture(4))).n_components == 4
    assert from_options("neural", options_of(PLAIN["neural"](hidden=(7, 3)))).hidden == (7, 3)


def test_code_is_not_data():
    with pytest.raises(InputError, match="cannot be loaded: it was code"):
        from_options("custom", options_of(CASES["custom"].emission))
