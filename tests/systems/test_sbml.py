"""SBML files: mass action in its many spellings, and one line for everything else."""

import builtins
import warnings

import numpy as np
import pytest

from neuralmjp import InputError
from neuralmjp.systems import SbmlNote, lotka_volterra, named, read_sbml
from neuralmjp.systems.lattice import event_rates

CORE = "http://www.sbml.org/sbml/level3/version1/core"
HEAD = f'<?xml version="1.0" encoding="UTF-8"?>\n<sbml xmlns="{CORE}" level="3" version="1">'


def law_of(formula: str, local: str = "") -> str:
    """MathML of the few forms that tests use, by libsbml itself."""
    import libsbml

    math = libsbml.writeMathMLToString(libsbml.parseL3Formula(formula)).split("\n", 1)[1]
    return f"<kineticLaw>{math}{local}</kineticLaw>"


def reaction(name: str, left: str, right: str, formula: str | None, modifiers: str = "", local: str = "") -> str:
    def side(tag: str, text: str) -> str:
        parts = [part.split() for part in text.split("+") if part.strip()]
        terms = [(one[-1], one[0] if len(one) == 2 else "1") for one in parts]
        references = "".join(f'<speciesReference species="{s}" stoichiometry="{n}" constant="true"/>' for s, n in terms)
        return f"<{tag}>{references}</{tag}>" if references else ""

    others = "".join(f'<modifierSpeciesReference species="{s}"/>' for s in modifiers.split())
    body = side("listOfReactants", left) + side("listOfProducts", right)
    body += f"<listOfModifiers>{others}</listOfModifiers>" if others else ""
    body += law_of(formula, local) if formula else ""
    return f'<reaction id="{name}" reversible="false" fast="false">{body}</reaction>'


def species(name: str, amount: float = 10, *, counts: bool = True, boundary: bool = False, home: str = "cell") -> str:
    flags = f'boundaryCondition="{str(boundary).lower()}" hasOnlySubstanceUnits="{str(counts).lower()}"'
    return f'<species id="{name}" compartment="{home}" initialAmount="{amount}" {flags} constant="false"/>'


def model(
    reactions: list[str], some: list[str], parameters: dict[str, float], size: float = 1.0, more: str = ""
) -> str:
    values = "".join(f'<parameter id="{name}" value="{v}" constant="true"/>' for name, v in parameters.items())
    given = f"<listOfParameters>{values}</listOfParameters>" if values else ""
    return (
        f'{HEAD}<model id="m" timeUnits="second"><listOfCompartments><compartment id="cell" size="{size}" '
        f'spatialDimensions="3" constant="true"/></listOfCompartments><listOfSpecies>{"".join(some)}</listOfSpecies>'
        f"{given}{more}<listOfReactions>{''.join(reactions)}</listOfReactions></model></sbml>"
    )


def write(path, *arguments, **settings):
    file = path / "m.xml"
    file.write_text(model(*arguments, **settings))
    return file


def rates_of(network) -> np.ndarray:
    return np.asarray(event_rates(network, network.process()))


XY = [species("X", 12), species("Y", 7)]
VALUES = {"alpha": 5e-4, "beta": 1e-4, "delta": 1e-4, "gamma": 5e-4}


def test_lotka_volterra(tmp_path):
    """Eaten prey with predators as modifiers: needed, but not changed."""
    reactions = [
        reaction("breed", "X", "2 X", "alpha * X"),
        reaction("eaten", "X", "", "beta * X * Y", modifiers="Y"),
        reaction("grow", "X + Y", "X + 2 Y", "X * delta * Y"),
        reaction("die", "Y", "", "gamma * Y"),
    ]
    network = read_sbml(write(tmp_path, reactions, XY, VALUES), box=59)
    truth = lotka_volterra()
    assert network.species == ("X", "Y")
    assert network.parameters == truth.parameters
    assert network.start == ((12, 12), (7, 7))
    assert (network.time_unit, network.name) == ("s", "m")
    np.testing.assert_array_equal(network.changes, truth.changes[:4])
    np.testing.assert_allclose(rates_of(network), rates_of(truth)[:4], rtol=1e-14)


def test_named_reads_xml(tmp_path):
    file = write(tmp_path, [reaction("die", "X", "", "d * X")], [species("X")], {"d": 0.5})
    assert named(str(file)) == read_sbml(file)


def test_the_command_shows_notes(run, tmp_path):
    write(tmp_path, [reaction("pair", "2 X", "", "d * X * X")], [species("X")], {"d": 0.5})
    ended = run("simulate", "m.xml", "--series", 2, "--length", 5, "--out", "data.csv")
    assert (ended.status, ended.err) == (0, "")
    assert "note: m.xml: d is d x 2" in ended.out
    assert "note: m.xml: reaction 'pair': powers of counts are read as combinations" in " ".join(ended.out.split())


@pytest.mark.parametrize(
    ("formula", "rate", "noted"),
    [
        ("d * X * (X - 1)", lambda x: x * (x - 1), True),
        ("d * X * (X - 1) / 2", lambda x: x * (x - 1) / 2, False),
        ("0.5 * d * (X - 1) * X", lambda x: x * (x - 1) / 2, False),
        ("d * X * X", lambda x: x * (x - 1), True),
        ("d * X^2 / 2", lambda x: x * (x - 1) / 2, True),
        ("d * pow(X, 2)", lambda x: x * (x - 1), True),
    ],
)
def test_pairs(tmp_path, formula, rate, noted):
    file = write(tmp_path, [reaction("pair", "2 X", "", formula)], [species("X")], {"d": 0.5})
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        network = read_sbml(file)
    assert bool(notes) == noted
    assert all(issubclass(note.category, SbmlNote) for note in notes)
    np.testing.assert_allclose(rates_of(network)[0], [0.5 * rate(x) for x in range(60)])


class TestSizes:
    """A compartment of size 4."""

    def read(self, tmp_path, formula, left="X + Y", counts=False):
        some = [species(name, 5, counts=counts) for name in ("X", "Y")]
        file = write(tmp_path, [reaction("r", left, "", formula)], some, {"k": 0.5}, size=4.0)
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always")
            return read_sbml(file, box={"X": 9, "Y": 9}), [str(note.message) for note in notes]

    def test_concentrations_of_one_species(self, tmp_path):
        """k [X] cell is k X: nothing to fold."""
        network, notes = self.read(tmp_path, "k * X * cell", left="X")
        np.testing.assert_allclose(rates_of(network)[0][:, 0], 0.5 * np.arange(10))
        assert not notes

    def test_concentrations_of_two(self, tmp_path):
        """k [X] [Y] cell is k X Y / 4."""
        network, notes = self.read(tmp_path, "cell * k * X * Y")
        np.testing.assert_allclose(rates_of(network)[0], np.outer(np.arange(10), np.arange(10)) / 8)
        assert network.parameters == {"k": 0.125}
        assert notes[0].endswith("k is k x 0.25: sizes, numbers or combinations are folded in")

    def test_counts_divided_by_a_size(self, tmp_path):
        network, _ = self.read(tmp_path, "k * X * Y / cell", counts=True)
        np.testing.assert_allclose(rates_of(network)[0][3, 5], 0.5 * 15 / 4)

    def test_pairs_of_a_concentration(self, tmp_path):
        with pytest.raises(InputError, match=r"'r': X - 1 is no number of pairs, because X is a concentration"):
            self.read(tmp_path, "k * X * (X - 1)", left="2 X")


def test_reverse_reaction(tmp_path):
    file = write(
        tmp_path, [reaction("bind", "X + Y", "C", "on * X * Y - off * C")], [*XY, species("C", 0)], {"on": 2, "off": 3}
    )
    network = read_sbml(file, box=15)
    assert [(r.consumed, r.produced) for r in network.reactions] == [
        ({"X": 1, "Y": 1}, {"C": 1}),
        ({"C": 1}, {"X": 1, "Y": 1}),
    ]
    assert network.parameters == {"on": 2, "off": 3}


def test_species_that_never_change_are_numbers(tmp_path):
    some = [species("A", 8, boundary=True), species("X", 0)]
    file = write(tmp_path, [reaction("made", "A", "X", "k * A"), reaction("gone", "X", "", "k * X")], some, {"k": 0.5})
    with pytest.warns(SbmlNote, match="made_k is k x 8"):
        network = read_sbml(file)
    assert network.species == ("X",)
    assert network.parameters == {"made_k": 4.0, "gone_k": 0.5}


def test_constants_at_home_in_reactions(tmp_path):
    """Local parameters may share a name; a number alone takes that of its reaction; a shared one stays one."""

    def local(value):
        return f'<listOfLocalParameters><localParameter id="k" value="{value}"/></listOfLocalParameters>'

    reactions = [
        reaction("up", "", "X", "k", local=local(2)),
        reaction("down", "X", "", "k * X", local=local(3)),
        reaction("leak", "", "Y", "0.25"),
        reaction("die", "Y", "", "g * Y"),
        reaction("turn", "Y", "X", "g * Y"),
    ]
    network = read_sbml(write(tmp_path, reactions, XY, {"g": 0.1}))
    assert network.parameters == {"up_k": 2, "down_k": 3, "leak": 0.25, "g": 0.1}
    assert network.reactions[4].constant == network.reactions[3].constant == "g"


def test_functions_and_initial_assignments_are_worked_out(tmp_path):
    import libsbml

    document = libsbml.readSBMLFromString(model([reaction("die", "X", "", "d * X")], [species("X")], {"d": 0.5}))
    made = document.getModel().createFunctionDefinition()
    made.setId("act")
    made.setMath(libsbml.parseL3Formula("lambda(k, s, k * s)"))
    document.getModel().getReaction(0).getKineticLaw().setMath(libsbml.parseL3Formula("act(d, X)"))
    first = document.getModel().createInitialAssignment()
    first.setSymbol("X")
    first.setMath(libsbml.parseL3Formula("3 * 7"))
    path = tmp_path / "f.sbml"
    path.write_text(libsbml.writeSBMLToString(document))
    network = read_sbml(path)
    assert network.parameters == {"d": 0.5}
    assert network.start == ((21, 21),)
    assert network.largest == (63,)


class TestErrors:
    @pytest.mark.parametrize(
        ("left", "formula", "message"),
        [
            ("X", "d * X / (1 + X)", "its law has a sum below a fraction"),
            ("X", "d * X / X", "its law divides by X"),
            ("X", "d + X", "its law is a sum"),
            ("X", "d * exp(X)", r"its law holds 'exp\(X\)'"),
            ("X", "d * e * X", "its law has more than one constant, d and e"),
            ("X", "d * X * (X - 2)", "its law is no number of combinations of X"),
            ("2 X", "d * X", "it takes 2 X, but its law needs 1"),
            ("0.5 X", "d * X", "the stoichiometry of X is no whole number"),
            ("X", "d * X^0.5", "its law has a power that is no whole number"),
            ("X", "-0.5 * X", r"its (law holds|constant is negative)"),
            ("X", None, "it has no kinetic law"),
        ],
    )
    def test_laws(self, tmp_path, left, formula, message):
        file = write(tmp_path, [reaction("odd", left, "", formula)], [species("X")], {"d": 0.5, "e": 1.0})
        with pytest.raises(InputError, match=rf"m\.xml, reaction 'odd': {message}.*; only mass action can be read"):
            read_sbml(file)

    def test_rules_and_events(self, tmp_path):
        import libsbml

        die = [reaction("die", "X", "", "d * X")]
        rule = f'<listOfRules><rateRule variable="d">{law_of("1")[12:-13]}</rateRule></listOfRules>'
        text = model(die, [species("X")], {"d": 0.5}, more=rule).replace(
            '"0.5" constant="true"', '"0.5" constant="false"'
        )
        path = tmp_path / "rule.xml"
        path.write_text(text)
        with pytest.raises(InputError, match="the rule for 'd' is more than reactions"):
            read_sbml(path)
        document = libsbml.readSBMLFromString(model(die, [species("X")], {"d": 0.5}))
        event = document.getModel().createEvent()
        event.setId("pulse")
        event.setUseValuesFromTriggerTime(True)
        trigger = event.createTrigger()
        trigger.setInitialValue(True)
        trigger.setPersistent(True)
        trigger.setMath(libsbml.parseL3Formula("time > 5"))
        path.write_text(libsbml.writeSBMLToString(document))
        with pytest.raises(InputError, match="the event 'pulse' is more than reactions"):
            read_sbml(path)

    def test_parts_of_individuals(self, tmp_path):
        file = write(tmp_path, [reaction("die", "X", "", "d * X")], [species("X", 0.25)], {"d": 0.5})
        with pytest.raises(InputError, match=r"X starts at 0.25; amounts must be whole numbers"):
            read_sbml(file)

    def test_nothing_that_changes(self, tmp_path):
        file = write(tmp_path, [reaction("same", "X", "X", "d * X")], [species("X")], {"d": 0.5})
        with pytest.raises(InputError, match="no reactions that change a species"):
            read_sbml(file)

    def test_box_of_nobody(self, tmp_path):
        file = write(tmp_path, [reaction("die", "X", "", "d * X")], [species("X")], {"d": 0.5})
        with pytest.raises(InputError, match="the box names 'Z', which is not among the species"):
            read_sbml(file, box={"Z": 3})

    def test_files(self, tmp_path):
        with pytest.raises(InputError, match=r"cannot read the reaction network .*no\.xml: there is no such file"):
            read_sbml(tmp_path / "no.xml")
        path = tmp_path / "broken.xml"
        path.write_text("<sbml")
        with pytest.raises(InputError, match=r"broken\.xml, line \d+: "):
            read_sbml(path)

    def test_without_the_library(self, tmp_path, monkeypatch):
        real = builtins.__import__

        def without(name, *rest):
            if name == "libsbml":
                raise ImportError(name)
            return real(name, *rest)

        monkeypatch.setattr(builtins, "__import__", without)
        with pytest.raises(InputError, match=r"pip install 'neuralmjp\[sbml\]'"):
            read_sbml(tmp_path / "any.xml")
