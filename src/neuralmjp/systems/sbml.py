"""Reaction networks from SBML files, as far as they are mass action on whole numbers of individuals.

A kinetic law must be one constant times species, and may hold numbers and compartment sizes: k * A * B * cell. Amounts
are read as counts; a species given as a concentration is its count divided by the size of its compartment. Sizes,
numbers and species that never change are folded into the constant. `X * (X - 1)` is what happens to pairs; `X * X` is
read as the same, because it is its limit for many individuals, with a note. A difference of two such products is a
reaction and its reverse.
"""

import warnings
from itertools import product
from math import factorial
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InputError
from .reaction_network import Reaction, ReactionNetwork

DEFAULT_LARGEST = 59
ROOM = 3  # times its initial count that a species may reach, if that is more


class SbmlNote(UserWarning):
    """What was read otherwise than it was written."""


class _Unreadable(Exception):
    """Why a reaction cannot be read."""


class _Factor(NamedTuple):
    """A number, a symbol, or a symbol less a whole number, with its power."""

    symbol: str | None
    number: float  # a factor of its own, or what is subtracted from the symbol
    power: int


class _Law(NamedTuple):
    """A product: what multiplies the constant, the constant, how many of each species it needs."""

    factor: float
    constant: str | None
    needed: dict[str, int]
    powers: bool  # whether X * X stood for X * (X - 1)


class _Rate(NamedTuple):
    """One direction of a reaction: its law and the change of counts."""

    reaction: str
    law: _Law
    change: dict[str, int]
    value: float  # of the constant alone
    key: str  # the constant, and where it is at home


class _Symbols(NamedTuple):
    """What names in a kinetic law stand for; for a species, what one individual counts as."""

    species: dict[str, float]
    numbers: dict[str, float]  # compartments, and species that never change
    parameters: dict[str, float]


def read_sbml(path: str | Path, box: int | dict[str, int] | None = None) -> ReactionNetwork:
    """A reaction network from an SBML file.

    Args:
        path: an .xml or .sbml file of any level.
        box: largest count of every species, or of some; 59, or three times the initial count, if left out.

    Rate constants keep the names of their parameters. Where something was folded into one, or powers were read as
    combinations, an `SbmlNote` (a warning) says so.
    """
    try:
        import libsbml
    except ImportError:
        raise InputError(f"{path}: reading SBML needs one more package: pip install 'neuralmjp[sbml]'") from None
    where = str(path)
    if not Path(path).is_file():
        raise InputError(f"cannot read the reaction network {path}: there is no such file")
    document = libsbml.readSBMLFromFile(where)
    errors = (document.getError(i) for i in range(document.getNumErrors()))
    first = next((one for one in errors if one.getSeverity() >= libsbml.LIBSBML_SEV_ERROR), None)
    if first is not None:
        raise InputError(f"{where}, line {first.getLine()}: {' '.join(first.getMessage().split())}")
    document.expandFunctionDefinitions()
    document.expandInitialAssignments()
    model = document.getModel()
    if model is None:
        raise InputError(f"{where}: there is no SBML model in it")
    try:
        return _Reader(libsbml, model, where).network(box)
    except OverflowError:
        raise InputError(f"{where}: a count or a stoichiometry in it is infinite; write a number") from None
    except InputError:
        raise
    except ValueError as error:  # NaN where a whole number is meant
        raise InputError(f"{where}: a number in it cannot be used ({error}); write another one") from None


class _Reader(NamedTuple):
    """A model, and libsbml to read it with."""

    libsbml: Any
    model: Any
    where: str

    def network(self, box: int | dict[str, int] | None) -> ReactionNetwork:
        self.refuse_what_is_not_reactions()
        species, starts, symbols = self.species()
        rates = [rate for one in self.model.getListOfReactions() for rate in self.rates(one, symbols)]
        if not rates or not species:
            raise InputError(f"{self.where}: there are no reactions that change a species")
        names, values = self.constants(rates)
        reactions = tuple(_reaction(rate, name) for rate, name in zip(rates, names, strict=True))
        given = dict.fromkeys(species, box) if isinstance(box, int) else box or {}
        for one in given:
            if one not in species:
                raise InputError(f"{self.where}: the box names {one!r}, which is not among the species {species}")
        return ReactionNetwork(
            species=species,
            reactions=reactions,
            constants=values,
            largest=tuple(given.get(one, max(DEFAULT_LARGEST, ROOM * starts[one])) for one in species),
            start=tuple((starts[one], starts[one]) for one in species),
            time_unit=self.time_unit(),
            name=Path(self.where).stem,
        )

    def refuse_what_is_not_reactions(self) -> None:
        model = self.model
        if model.getNumEvents():
            named = model.getEvent(0).getId() or "without a name"
            raise InputError(f"{self.where}: the event {named!r} is more than reactions; only those can be read")
        for rule in model.getListOfRules():
            raise InputError(
                f"{self.where}: the rule for {rule.getVariable()!r} is more than reactions; only those can be read"
            )
        for one in model.getListOfInitialAssignments():
            raise InputError(f"{self.where}: the initial value of {one.getSymbol()!r} cannot be worked out")

    def species(self) -> tuple[tuple[str, ...], dict[str, int], _Symbols]:
        """Those that change, their initial counts, and all symbols."""
        sizes = {c.getId(): c.getSize() if c.isSetSize() else 1.0 for c in self.model.getListOfCompartments()}
        species, starts, numbers = {}, {}, dict(sizes)
        for one in self.model.getListOfSpecies():
            name, size = one.getId(), sizes.get(one.getCompartment(), 1.0)
            counts = one.getHasOnlySubstanceUnits()
            amount = one.getInitialAmount() if one.isSetInitialAmount() else 0.0
            if one.isSetInitialConcentration():
                amount = one.getInitialConcentration() * size
            if one.getBoundaryCondition() or one.getConstant():
                numbers[name] = amount if counts else amount / size
                continue
            if abs(amount - round(amount)) > 1e-9 or amount < 0:
                raise InputError(
                    f"{self.where}: {name} starts at {amount:g}; amounts must be whole numbers of individuals"
                )
            species[name] = 1.0 if counts else 1.0 / size
            starts[name] = round(amount)
        values = {p.getId(): p.getValue() for p in self.model.getListOfParameters() if p.isSetValue()}
        return tuple(species), starts, _Symbols(species, numbers, values)

    def rates(self, reaction: Any, symbols: _Symbols) -> list[_Rate]:
        """A reaction, and its reverse if the law has one."""
        name = reaction.getId()
        try:
            if not reaction.isSetKineticLaw() or reaction.getKineticLaw().getMath() is None:
                raise _Unreadable("it has no kinetic law")
            change = self.change(reaction, symbols)
            local = {p.getId(): p.getValue() for p in self.local_parameters(reaction.getKineticLaw())}
            terms = self.terms(reaction.getKineticLaw().getMath())
            if sorted(sign for sign, _ in terms) not in ([1], [-1, 1]):
                raise _Unreadable("its law is a sum")
            found = []
            for sign, factors in terms:
                law = _law(factors, symbols._replace(parameters={**symbols.parameters, **local}))
                own = f"{name}.{law.constant}" if law.constant in local else str(law.constant or f"{name}.")
                value = 1.0 if law.constant is None else {**symbols.parameters, **local}[law.constant]
                if law.factor < 0 or value < 0:
                    raise _Unreadable("its constant is negative")
                found.append(_Rate(name, law, {s: sign * n for s, n in change.items()}, value, own))
            for rate in found:
                for one, by in rate.change.items():
                    if rate.law.needed.get(one, 0) + by < 0:
                        raise _Unreadable(f"it takes {-by} {one}, but its law needs {rate.law.needed.get(one, 0)}")
        except _Unreadable as why:
            raise InputError(
                f"{self.where}, reaction {name!r}: {why}; only mass action can be read, a constant times species"
            ) from None
        return [rate for rate in found if any(rate.change.values())]

    def local_parameters(self, law: Any) -> list[Any]:
        return [*law.getListOfLocalParameters()] or [*law.getListOfParameters()]

    def change(self, reaction: Any, symbols: _Symbols) -> dict[str, int]:
        """Net change of the species that can change."""
        change: dict[str, int] = {}
        for sign, side in ((-1, reaction.getListOfReactants()), (1, reaction.getListOfProducts())):
            for one in side:
                amount = one.getStoichiometry() if one.isSetStoichiometry() else 1.0
                if one.isSetStoichiometryMath() or amount != round(amount) or amount < 0:
                    raise _Unreadable(f"the stoichiometry of {one.getSpecies()} is no whole number")
                if one.getSpecies() in symbols.species:
                    change[one.getSpecies()] = change.get(one.getSpecies(), 0) + sign * round(amount)
        return change

    def terms(self, node: Any) -> list[tuple[int, list[_Factor]]]:
        """A law as signed products of factors."""
        lib, kind = self.libsbml, node.getType()
        children = [node.getChild(i) for i in range(node.getNumChildren())]
        if node.isNumber():
            return [(1, [_Factor(None, node.getValue(), 1)])]
        if kind == lib.AST_NAME:
            return [(1, [_Factor(node.getName(), 0.0, 1)])]
        if kind == lib.AST_TIMES:
            choices = product(*(self.terms(child) for child in children))
            return [_multiplied(choice) for choice in choices]
        if kind == lib.AST_DIVIDE:
            ((sign, below),) = self.only(children[1])
            inverse = (sign, [one._replace(power=-one.power) for one in below])
            return [_multiplied((above, inverse)) for above in self.terms(children[0])]
        if kind in (lib.AST_POWER, lib.AST_FUNCTION_POWER) and children[1].isNumber():
            times = children[1].getValue()
            ((sign, base),) = self.only(children[0])
            if times != round(times) or times < 0:
                raise _Unreadable("its law has a power that is no whole number")
            return [(sign ** round(times), [one._replace(power=one.power * round(times)) for one in base])]
        if kind == lib.AST_MINUS and len(children) == 2:
            first, second = children
            if first.getType() == lib.AST_NAME and second.isNumber():
                return [(1, [_Factor(first.getName(), second.getValue(), 1)])]
            return [*self.terms(first), *((-sign, factors) for sign, factors in self.terms(second))]
        if kind == lib.AST_PLUS and len(children) == 2:
            return [term for child in children for term in self.terms(child)]
        raise _Unreadable(f"its law holds {lib.formulaToL3String(node)!r}")

    def only(self, node: Any) -> list[tuple[int, list[_Factor]]]:
        terms = self.terms(node)
        if len(terms) != 1:
            raise _Unreadable("its law has a sum below a fraction or in a power")
        return terms

    def constants(self, rates: list[_Rate]) -> tuple[list[str], dict[str, float]]:
        """Names of the constants, one per rate, and their values with everything folded in."""
        folded = {(rate.key, _fold(rate)): rate for rate in rates}
        plain = {key: key.split(".")[-1] or key[:-1] for key, _ in folded}
        names: dict[tuple[str, float], str] = {}
        for (key, factor), rate in folded.items():
            name = plain[key]
            alone = sum(other == key for other, _ in folded) == 1
            clashes = sum(other == name for other in plain.values()) > 1
            names[key, factor] = name if alone and not clashes else f"{rate.reaction}_{name}"
            if factor != 1 and not key.endswith("."):
                self.note(f"{names[key, factor]} is {name} x {factor:g}: sizes, numbers or combinations are folded in")
        for rate in rates:
            if rate.law.powers:
                self.note(
                    f"reaction {rate.reaction!r}: powers of counts are read as combinations, X * (X - 1) for X * X"
                )
        values = {names[key, factor]: rate.value * factor for (key, factor), rate in folded.items()}
        return [names[rate.key, _fold(rate)] for rate in rates], values

    def note(self, text: str) -> None:
        warnings.warn(f"{self.where}: {text}", SbmlNote, stacklevel=5)

    def time_unit(self) -> str:
        unit = self.model.getTimeUnits() if self.model.getLevel() > 2 else ""
        return {"second": "s", "": "time unit"}.get(unit, unit)


def _multiplied(parts: tuple[tuple[int, list[_Factor]], ...]) -> tuple[int, list[_Factor]]:
    sign, factors = 1, []
    for one, some in parts:
        sign *= one
        factors += some
    return sign, factors


def _law(factors: list[_Factor], symbols: _Symbols) -> _Law:
    """Sort a product into numbers, one constant, and species."""
    factor, constants = 1.0, []
    counted: dict[str, list[float]] = {}
    for symbol, number, power in factors:
        if symbol is None:
            factor *= number**power
        elif symbol in symbols.species and power > 0:
            factor *= symbols.species[symbol] ** power
            counted.setdefault(symbol, []).extend([number] * power)
            if number and symbols.species[symbol] != 1:
                raise _Unreadable(f"{symbol} - {number:g} is no number of pairs, because {symbol} is a concentration")
        elif symbol in symbols.numbers and not number:
            factor *= symbols.numbers[symbol] ** power
        elif symbol in symbols.parameters and not number and power == 1:
            constants.append(symbol)
        elif symbol in symbols.parameters or symbol in symbols.species:
            raise _Unreadable(f"its law divides by {symbol} or subtracts from it")
        else:
            raise _Unreadable(f"{symbol!r} has no value")
    if len(constants) > 1:
        raise _Unreadable(f"its law has more than one constant, {' and '.join(constants)}")
    powers = False
    for species, offsets in counted.items():
        if sorted(offsets) != list(range(len(offsets))):
            if any(offsets):
                raise _Unreadable(f"its law is no number of combinations of {species}")
            powers = True
    return _Law(factor, constants[0] if constants else None, {s: len(some) for s, some in counted.items()}, powers)


def _fold(rate: _Rate) -> float:
    """What multiplies the constant: k X (X - 1) is 2 k for each of the pairs that mass action counts."""
    fold = rate.law.factor
    for n in rate.law.needed.values():
        fold *= factorial(n)
    return float(f"{fold:.12g}")  # so that two reactions which share a constant agree on it


def _reaction(rate: _Rate, constant: str) -> Reaction:
    needed = rate.law.needed
    after = {s: needed.get(s, 0) + rate.change.get(s, 0) for s in dict.fromkeys((*needed, *rate.change))}
    return Reaction(dict(needed), {s: n for s, n in after.items() if n}, constant)
