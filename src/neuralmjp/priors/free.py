"""Rates that are free, except for those that are forbidden, fixed, or tied to each other."""

from collections.abc import Mapping, Sequence

import equinox as eqx
import numpy as np
from jaxtyping import Bool, Float, Int

from ..arguments import numbers_of
from ..errors import InputError
from ..mjp.types import ArrayLike, Square, as_tuples
from .rate_model import Logs, RateModel, log_floor

Jump = tuple[int, int]


class FreeRates(RateModel):
    """Every allowed jump has a rate of its own, unless it is fixed or shares one.

    Args:
        n_states: K.
        mask: (K, K), true where a jump may happen; all jumps if not given.
        fixed: rates that are known, by jump: {(0, 1): 2.0}.
        equal: groups of jumps with one rate each: [[(0, 1), (1, 2)]].

    >>> model = FreeRates(2, fixed={(1, 0): 3.0})
    >>> model.names, model.rates(np.array([0.0]))[1, 0].item()
    (('0->1',), 3.0)
    """

    # Tables as tuples, so that a model can be a static argument of a compiled function.
    parameters: tuple[tuple[int, ...], ...] = eqx.field(static=True)  # index of the parameter, -1 where there is none
    fixed: tuple[tuple[float, ...], ...] = eqx.field(static=True)  # known rates, 0 elsewhere
    labels: tuple[str, ...] = eqx.field(static=True)

    def __init__(
        self,
        n_states: int,
        *,
        mask: ArrayLike | None = None,
        fixed: Mapping[Jump, float] | None = None,
        equal: Sequence[Sequence[Jump]] = (),
    ):
        allowed = check_mask(mask, n_states)
        constants = np.zeros((n_states, n_states))
        parameter_of = np.full((n_states, n_states), -1)
        for jump, rate in (fixed or {}).items():
            _require(allowed, jump)
            if not (rate >= 0 and np.isfinite(rate)):
                raise InputError(f"the fixed rate of jump {jump[0]}->{jump[1]} must not be negative, got {rate}")
            constants[jump] = rate
        free = allowed.copy()
        for jump in fixed or {}:
            free[jump] = False
        groups = [sorted(group) for group in equal if group]  # sorted: one order of parameters for one set of ties
        for jump in (jump for group in groups for jump in group):
            _require(allowed, jump)
            if not free[jump]:
                raise InputError(f"jump {jump[0]}->{jump[1]} is tied twice, or tied and fixed")
            free[jump] = False
        groups += [[(int(i), int(j))] for i, j in np.argwhere(free)]
        groups.sort(key=lambda group: group[0])
        for index, group in enumerate(groups):
            for jump in group:
                parameter_of[jump] = index
        if not groups:
            raise InputError("no rate is left to find: every allowed jump is fixed")
        self.parameters, self.fixed = as_tuples(parameter_of), as_tuples(constants)
        self.labels = tuple("=".join(f"{i}->{j}" for i, j in group) for group in groups)

    @classmethod
    def from_tables(
        cls, parameters: Int[np.ndarray, "state state"], fixed: Float[np.ndarray, "state state"]
    ) -> "FreeRates":
        """The model with this parameter for each jump (-1 for none) and these fixed rates."""
        numbers = np.unique(parameters[parameters >= 0])
        jumps = [[(int(i), int(j)) for i, j in np.argwhere(parameters == k)] for k in numbers]
        known = {(int(i), int(j)): float(fixed[i, j]) for i, j in np.argwhere(fixed > 0)}
        mask = ((parameters >= 0) | (fixed > 0)).astype(int)
        return cls(len(parameters), mask=mask, fixed=known, equal=[group for group in jumps if len(group) > 1])

    @property
    def parameter_of(self) -> Int[np.ndarray, "state state"]:
        return np.array(self.parameters)

    @property
    def allowed(self) -> Bool[np.ndarray, "state state"]:
        return (self.parameter_of >= 0) | (np.array(self.fixed) > 0)

    @property
    def names(self) -> tuple[str, ...]:
        return self.labels

    @property
    def closed_form(self) -> bool:
        """Every free rate stands alone, so that EM updates it by jumps over time."""
        return len(self.labels) == int((self.parameter_of >= 0).sum())

    def rates(self, theta: Logs) -> Square:
        table, xp = self.parameter_of, theta.__array_namespace__()
        return xp.where(table >= 0, xp.exp(theta)[..., np.maximum(table, 0)], np.array(self.fixed))

    @property
    def on_host(self) -> bool:
        return True

    def slopes(self, theta: Float[np.ndarray, "parameter"]) -> Float[np.ndarray, "parameter state state"]:
        own = self.parameter_of == np.arange(self.n_parameters)[:, None, None]
        return own * np.exp(theta)[:, None, None]

    def nearest(self, rates: Float[np.ndarray, "state state"]) -> Float[np.ndarray, "parameter"]:
        used = self.parameter_of >= 0
        logs = log_floor(rates)
        total = np.bincount(self.parameter_of[used], weights=logs[used], minlength=self.n_parameters)
        return total / np.bincount(self.parameter_of[used], minlength=self.n_parameters)


def check_mask(mask: ArrayLike | None, n_states: int) -> Bool[np.ndarray, "state state"]:
    """Which jumps are allowed, as a table without its diagonal."""
    off = ~np.eye(n_states, dtype=bool)
    if mask is None:
        return off
    table = numbers_of(mask, "a mask")
    if table.shape != (n_states, n_states):
        raise InputError(f"a mask for {n_states} states is a {n_states} x {n_states} table, got shape {table.shape}")
    if not np.isin(table, (0, 1)).all():
        raise InputError("a mask holds 1 where a jump is allowed and 0 where it is not, nothing else")
    if not (table.astype(bool) & off).any():
        raise InputError("the mask forbids every jump")
    return table.astype(bool) & off


def _require(allowed: np.ndarray, jump: Jump) -> None:
    if not (min(jump) >= 0 and max(jump) < len(allowed) and allowed[jump]):
        raise InputError(f"jump {jump[0]}->{jump[1]} is not among the allowed ones")
