"""Reaction networks that everyone knows, with values that show what they do. Counts are read with Gaussian noise.

Each returns a `ReactionNetwork`: `dataclasses.replace` changes its box, its start or its noise.
"""

from .reaction_network import Reaction, ReactionNetwork


def birth_death(birth: float = 0.9, death: float = 1.0) -> ReactionNetwork:
    """Individuals that divide and die on their own: X -> 2 X, X -> 0.

    From one individual, the chance of extinction by time t is death (e - 1) / (birth e - death), with
    e = exp((birth - death) t), and those that survive are geometric (Kendall 1948).

    >>> birth_death().parameters
    {'birth': 0.9, 'death': 1.0}
    """
    return ReactionNetwork(
        species=("X",),
        reactions=(Reaction({"X": 1}, {"X": 2}, "birth"), Reaction({"X": 1}, {}, "death")),
        constants={"birth": birth, "death": death},
        largest=(150,),
        start=((20, 20),),
        duration=5.0,
        name="birth-death",
    )


def immigration_death(immigration: float = 2.0, death: float = 0.1) -> ReactionNetwork:
    """Individuals that arrive at a constant rate and die on their own: 0 -> X, X -> 0.

    In the long run counts are Poisson with mean immigration / death.

    >>> immigration_death().parameters
    {'immigration': 2.0, 'death': 0.1}
    """
    return ReactionNetwork(
        species=("X",),
        reactions=(Reaction({}, {"X": 1}, "immigration"), Reaction({"X": 1}, {}, "death")),
        constants={"immigration": immigration, "death": death},
        largest=(60,),
        start=((5, 20),),
        duration=50.0,
        name="immigration-death",
    )


def sir(infection: float = 0.02, removal: float = 0.5, *, population: int = 50, infected: int = 2) -> ReactionNetwork:
    """An epidemic that ends: S + I -> 2 I, I -> 0. Those removed are what is left of the population.

    `infection` is per pair: with R = infection x population / removal above 1 a large outbreak is possible.

    >>> sir(population=100).start
    ((98, 98), (2, 2))
    """
    return ReactionNetwork(
        species=("S", "I"),
        reactions=(Reaction({"S": 1, "I": 1}, {"I": 2}, "infection"), Reaction({"I": 1}, {}, "removal")),
        constants={"infection": infection, "removal": removal},
        largest=(population, population),
        start=((population - infected, population - infected), (infected, infected)),
        duration=20.0,
        name="sir",
    )


def sis(infection: float = 0.02, recovery: float = 0.5, *, population: int = 50, infected: int = 5) -> ReactionNetwork:
    """An infection that stays: S + I -> 2 I, I -> S. The population is constant.

    With infection x population above `recovery` the infected hover round population - recovery / infection for a time
    that grows exponentially with the population.

    >>> sis().parameters
    {'infection': 0.02, 'recovery': 0.5}
    """
    return ReactionNetwork(
        species=("S", "I"),
        reactions=(Reaction({"S": 1, "I": 1}, {"I": 2}, "infection"), Reaction({"I": 1}, {"S": 1}, "recovery")),
        constants={"infection": infection, "recovery": recovery},
        largest=(population, population),
        start=((population - infected, population - infected), (infected, infected)),
        duration=30.0,
        name="sis",
    )


def schloegl(
    growth: float = 0.03, crowding: float = 1e-4, inflow: float = 200.0, outflow: float = 3.5
) -> ReactionNetwork:
    """Schlögl's model, two levels with rare changes between them: 2 X -> 3 X, 3 X -> 2 X, 0 -> X, X -> 0.

    The values are those of Gillespie's textbooks, where counts linger near 82 and 563.

    >>> schloegl().parameters
    {'growth': 0.03, 'crowding': 0.0001, 'inflow': 200.0, 'outflow': 3.5}
    """
    return ReactionNetwork(
        species=("X",),
        reactions=(
            Reaction({"X": 2}, {"X": 3}, "growth"),
            Reaction({"X": 3}, {"X": 2}, "crowding"),
            Reaction({}, {"X": 1}, "inflow"),
            Reaction({"X": 1}, {}, "outflow"),
        ),
        constants={"growth": growth, "crowding": crowding, "inflow": inflow, "outflow": outflow},
        largest=(900,),
        start=((250, 250),),
        duration=10.0,
        name="schloegl",
    )


def telegraph(
    switch_on: float = 0.2, switch_off: float = 0.3, transcription: float = 15.0, decay: float = 1.0
) -> ReactionNetwork:
    """A gene that is on or off, and its transcripts: 0 -> on, on -> 0, on -> on + mRNA, mRNA -> 0.

    There is one gene: `on` is 0 or 1, and 0 -> on does not happen out of that box. Only the mRNA is seen. In the long
    run it is Poisson with a mean that is transcription / decay times a Beta variable (Peccoud & Ycart 1995).

    >>> telegraph().value_names
    ('mRNA',)
    """
    return ReactionNetwork(
        species=("on", "mRNA"),
        reactions=(
            Reaction({}, {"on": 1}, "switch_on"),
            Reaction({"on": 1}, {}, "switch_off"),
            Reaction({"on": 1}, {"on": 1, "mRNA": 1}, "transcription"),
            Reaction({"mRNA": 1}, {}, "decay"),
        ),
        constants={
            "switch_on": switch_on,
            "switch_off": switch_off,
            "transcription": transcription,
            "decay": decay,
        },
        largest=(1, 45),
        start=((0, 1), (0, 15)),
        seen=(("mRNA",),),
        duration=30.0,
        name="telegraph",
    )
