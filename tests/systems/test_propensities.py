"""Users' own propensities and what is seen of a network: in Python, in text, and down to tables."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import poisson

from law import assert_counts_follow, assert_mean
from neuralmjp import InputError, mjp
from neuralmjp.systems import Reaction, ReactionNetwork, lotka_volterra, parse_network, sir, sparse_generator, telegraph
from neuralmjp.systems.lattice import event_rates


def feedback(make, largest=(12, 8), **settings) -> ReactionNetwork:
    """A protein P is made at a rate of the user's choice that may depend on an enzyme E, and decays."""
    return ReactionNetwork(
        species=("P", "E"),
        reactions=(Reaction({}, {"P": 1}, "make", make), Reaction({"P": 1}, {}, "decay")),
        constants={"make": 3.0, "decay": 0.5},
        largest=largest,
        start=((0, 5), (2, 2)),
        **settings,
    )


PRODUCT = feedback({"P": lambda p: 1 / (1 + p), "E": lambda e: e**2})
JOINT = feedback(lambda x: x["E"] ** 2 / (1 + x["P"]))


@pytest.mark.parametrize("network", [PRODUCT, JOINT], ids=["product", "joint"])
def test_rates_are_the_users(network):
    p, e = np.meshgrid(np.arange(13), np.arange(9), indexing="ij")
    made, decayed = np.asarray(event_rates(network, network.process()))
    np.testing.assert_allclose(made, 3.0 * e**2 / (1 + p) * (p < 12), rtol=1e-14)
    np.testing.assert_allclose(decayed, 0.5 * p, rtol=1e-14)


def test_only_products_can_be_taken_apart():
    assert PRODUCT.events().one_at_a_time
    assert not JOINT.events().one_at_a_time
    assert not sir().events().one_at_a_time
    assert lotka_volterra().events().one_at_a_time
    assert telegraph().events().one_at_a_time


def test_a_propensity_that_is_mass_action_changes_nothing():
    plain = lotka_volterra()
    eaten = plain.reactions[1]
    for own in ({"prey": lambda x: x, "predator": lambda y: y}, lambda x: x["prey"] * x["predator"]):
        reactions = (plain.reactions[0], replace(eaten, propensity=own), *plain.reactions[2:])
        other = replace(plain, reactions=reactions).simulate(4, 10, seed=1)
        assert other.data.equals(plain.simulate(4, 10, seed=1).data)


@pytest.mark.parametrize("own", [{"X": lambda x: 5.0}, lambda x: 5.0 + 0 * x["X"]], ids=["product", "joint"])
def test_nothing_is_consumed_that_is_not_there(own):
    """A constant propensity of 2 X -> 0 stops below two."""
    network = ReactionNetwork(("X",), (Reaction({"X": 2}, {}, "c", own),), {"c": 1.0}, (4,), ((3, 3),))
    np.testing.assert_allclose(event_rates(network, network.process())[0], [0, 0, 5, 5, 5])


@pytest.mark.statistical
def test_simulation_follows_the_generator():
    """Stationary law of a self-repressed protein, one count per series; a correct program fails in 1e-4."""
    network = replace(PRODUCT, noise="none", start=((3, 3), (1, 1)))
    counts = network.simulate(5000, 2, grid="regular", duration=40.0, seed=3).states.reshape(-1, 2, 2)[:, 1, 0]
    generator = sparse_generator(network).toarray()
    cells = np.ravel_multi_index((np.arange(13), np.ones(13, int)), network.box)
    rates = generator[np.ix_(cells, cells)]
    law = mjp.stationary_distribution(rates - np.diag(np.diag(rates)))
    assert_counts_follow(np.bincount(counts, minlength=13), law)


def test_ways_outside_the_box_are_none():
    ways = PRODUCT.events().ways([jnp.array([-1, 0, 13]), jnp.array([1, 1, 1])])
    np.testing.assert_allclose(ways, [[0, 1, 0], [0, 0, 0]])


def test_a_floor_raises_bystanders_alone():
    """In x + y -> y the predator is a bystander, the prey is not."""
    events = lotka_volterra().events()
    floored = events.with_floor(0.01)
    np.testing.assert_allclose(floored.factors[1, 1, :3], [0.01, 1, 2])
    np.testing.assert_array_equal(floored.factors[1, 0], events.factors[1, 0])
    np.testing.assert_array_equal(floored.factors[:, :, 1:], np.maximum(events.factors, 0)[:, :, 1:])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        ({"Q": lambda q: q}, "names 'Q', which is not among the species"),
        ({"P": lambda p: p - 1.0}, "the reaction at make: a propensity must be finite and not negative"),
        ({"E": lambda e: e + np.nan}, "for every count from 0 to 8"),
    ],
)
def test_bad_propensities(make, message):
    with pytest.raises(InputError, match=message):
        feedback(make).events()


class TestSeen:
    def test_sums_and_single_species(self):
        network = replace(lotka_volterra(), seen=(("predator",), ("prey", "predator")), noise="none")
        assert network.value_names == ("predator", "prey+predator")
        simulation = network.simulate(3, 8, seed=0)
        counts = simulation.states
        np.testing.assert_array_equal(simulation.data.values, np.stack([counts[:, 1], counts.sum(1)], -1))
        assert simulation.state_names == ("prey", "predator")
        assert simulation.part(1, 2).state_names == ("prey", "predator")

    def test_text_is_python(self):
        text = "prey -> 0 @ a = 1\npredator -> 0 @ b = 1\nseen predator, prey + predator\nnoise binomial 0.3"
        network = parse_network(text)
        assert network.seen == (("predator",), ("prey", "predator"))
        readings, params = network.readings()
        assert (readings.columns, readings.noise) == (((1,), (0, 1)), "binomial")
        np.testing.assert_allclose(1 / (1 + np.exp(-params["logit_detection"])), 0.3)

    def test_everything_without_it(self):
        assert parse_network("X -> Y @ a = 1").readings()[0].columns == ((0,), (1,))

    @pytest.mark.parametrize("line", ["seen 2 X", "seen X,", "seen 0", "seen X + X", "seen"])
    def test_bad_text(self, line):
        with pytest.raises(InputError, match="net, line 2: cannot read"):
            parse_network(f"X -> 0 @ d = 1\n{line}", where="net")

    def test_unknown_species(self):
        with pytest.raises(InputError, match=r"net: .*'Z' is seen, but is not among the species"):
            parse_network("X -> 0 @ d = 1\nseen Z", where="net")

    @pytest.mark.parametrize("scale", [0.0, 1.5])
    def test_chance_of_detection(self, scale):
        with pytest.raises(InputError, match=r"a chance of detection lies in \(0, 1\]"):
            parse_network(f"X -> 0 @ d = 1\nnoise binomial {scale}")

    @pytest.mark.parametrize("noise", ["binomial 1", "gaussian 0", "two-sided-exponential 0"])
    def test_certain_readings_have_no_noise(self, noise):
        assert parse_network(f"X -> 0 @ d = 1\nnoise {noise}").readings()[0].noise == "none"

    @pytest.mark.statistical
    def test_thinned_poisson_counts_are_poisson(self):
        """Each of Poisson(4) individuals is seen with 0.3; a correct program fails in 1e-4 of all seeds."""
        network = parse_network("0 -> X @ k = 2\nX -> 0 @ d = 0.5\nnoise binomial 0.3\nstart X 0")
        values = network.simulate(8000, 2, grid="regular", duration=40.0, seed=3).data.values.reshape(-1, 2)[:, 1]
        assert_counts_follow(np.bincount(values.astype(int), minlength=30), poisson.pmf(np.arange(30), 1.2))

    @pytest.mark.statistical
    def test_poisson_readings(self):
        """A correct program fails in 2e-4 of all seeds."""
        network = parse_network("X -> 0 @ d = 0\nnoise poisson\nstart X 9")
        values = network.simulate(4000, 2, seed=3).data.values[:, 0]
        assert_mean(values, 9.0)
        assert_mean((values - 9.0) ** 2, 9.0)
