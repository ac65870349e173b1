"""All answers together: states named alike, every number with its spread over seeds, as one table."""

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from ..fitted_files import plain, versions
from .answer import Answer
from .matching import agreement, matched


class Outcome(NamedTuple):
    """How one fit ended: with an answer, or in words."""

    answer: Answer | None
    failed: str = ""


class Entry(NamedTuple):
    """A row of the table: what it is, in which unit, and its values by method, one for each seed that answered."""

    section: str
    name: str
    unit: str
    values: dict[str, Float[np.ndarray, "seed"]]


@dataclass(frozen=True)
class Comparison:
    """Methods on the same data.

    Attributes:
        outcomes: of every method, one for each seed; the states of all are those of `named_after`.
        named_after: the truth, or the first method that answered.
        reference: the states of the observations that others are matched with.
    """

    outcomes: dict[str, tuple[Outcome, ...]]
    n_states: int
    time_unit: str
    named_after: str
    reference: Int[np.ndarray, "row"] | None

    @classmethod
    def of(
        cls,
        outcomes: Mapping[str, tuple[Outcome, ...]],
        n_states: int,
        time_unit: str,
        truth: Int[np.ndarray, "row"] | None = None,
    ) -> "Comparison":
        """Name all states after the truth, or after the first answer."""
        reference, name = truth, "the truth"
        if reference is None:
            there = ((method, one.answer) for method, each in outcomes.items() for one in each if one.answer)
            name, first = next(there, ("", None))
            reference = None if first is None else first.states
        alike = {method: tuple(_renamed(one, reference, n_states) for one in each) for method, each in outcomes.items()}
        return cls(alike, n_states, time_unit, name, reference)

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(self.outcomes)

    def answers(self, method: str) -> tuple[Answer, ...]:
        return tuple(one.answer for one in self.outcomes[method] if one.answer is not None)

    def failures(self) -> Iterator[str]:
        """One line for each fit that has no answer."""
        for method, each in self.outcomes.items():
            for k, one in enumerate(each):
                if one.answer is None:
                    yield f"{method}, run {k + 1} of {len(each)}: {one.failed}"

    def warnings(self) -> Iterator[str]:
        """What methods said of their own answers, each once."""
        for method in self.methods:
            for word in dict.fromkeys(word for one in self.answers(method) for word in one.warnings):
                yield f"{method}: {word}"

    def table(self) -> list[Entry]:
        """Every quantity, row by row."""
        k, unit = self.n_states, self.time_unit
        rows = [
            Entry("timescales", f"t{n + 1}", unit, self._each(lambda a, n=n: _nth(a.timescales, n)))
            for n in range(k - 1)
        ]
        rows += [
            Entry("stationary law", f"p{i}", "", self._each(lambda a, i=i: a.stationary_distribution[i]))
            for i in range(k)
        ]
        rows += [
            Entry("first passage", f"{i} to {j}", unit, self._each(lambda a, i=i, j=j: a.mfpt[i, j]))
            for i in range(k)
            for j in range(k)
            if i != j
        ]
        same = "accuracy" if self.named_after == "the truth" else f"agrees with {self.named_after}"
        rows += [
            Entry("judged", same, "", self._each(self._agreement)),
            Entry("judged", "held-out log-likelihood", "nats per observation", self._each(lambda a: a.held_out)),
            Entry("cost", "time", "s", self._each(lambda a: a.seconds)),
            Entry("cost", "memory", "MB", self._each(lambda a: a.megabytes)),
        ]
        return rows

    def _each(self, number: Any) -> dict[str, Float[np.ndarray, "seed"]]:
        return {method: np.array([number(one) for one in self.answers(method)], float) for method in self.methods}

    def _agreement(self, one: Answer) -> float:
        return float("nan") if self.reference is None else agreement(self.reference, one.states)

    def to_csv(self) -> str:
        """Long form: one line per number."""
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(["section", "quantity", "unit", "method", "run", "value"])
        for row in self.table():
            for method, values in row.values.items():
                lines.writerows([row.section, row.name, row.unit, method, k, value] for k, value in enumerate(values))
        return text.getvalue()

    def to_json(self) -> dict[str, Any]:
        """Every number with mean and sd over the runs that answered, and why others did not."""
        rows = [
            {
                "section": row.section,
                "quantity": row.name,
                "unit": row.unit,
                "methods": {m: {"mean": mean_of(v), "sd": sd_of(v), "runs": v} for m, v in row.values.items()},
            }
            for row in self.table()
        ]
        known = {"n_states": self.n_states, "time_unit": self.time_unit, "states_named_after": self.named_after}
        told = {"failures": list(self.failures()), "warnings": list(self.warnings()), "versions": versions()}
        return plain({**known, "methods": list(self.methods), "table": rows, **told})

    def to_latex(self) -> str:
        """A tabular with a part for each section, for booktabs."""
        lines = [f"\\begin{{tabular}}{{l{'r' * len(self.methods)}}}", "\\toprule"]
        lines.append(" & ".join(["", *(_escaped(method) for method in self.methods)]) + r" \\")
        section = ""
        for row in self.table():
            if row.section != section:
                unit = f" ({row.unit})" if row.unit else ""
                lines += [
                    r"\midrule",
                    rf"\multicolumn{{{len(self.methods) + 1}}}{{l}}{{{_escaped(row.section + unit)}}} \\",
                ]
                section = row.section
            cells = [shown(values, r" $\pm$ ") for values in row.values.values()]
            lines.append(" & ".join([_escaped(row.name), *cells]) + r" \\")
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def shown(values: Float[np.ndarray, "seed"], between: str = " ±", missing: str = "-") -> str:
    """Mean with three digits more than nothing, and the spread where there are several runs."""
    mean, sd = mean_of(values), sd_of(values)
    if not np.isfinite(mean):
        return "∞" if np.isinf(mean) else missing
    decimals = 0 if mean == 0 else int(np.clip(2 - np.floor(np.log10(abs(mean))), 0, 6))
    decimals = max(decimals, 3) if abs(mean) <= 1 else decimals
    return f"{mean:.{decimals}f}" + ("" if np.isnan(sd) else f"{between}{sd:.{decimals}f}")


def mean_of(values: Float[np.ndarray, "seed"]) -> float:
    return float(values.mean()) if len(values) else float("nan")


def sd_of(values: Float[np.ndarray, "seed"]) -> float:
    """NaN for a single run."""
    return float(values.std(ddof=1)) if len(values) > 1 and np.isfinite(values).all() else float("nan")


def _renamed(one: Outcome, reference: Int[np.ndarray, "row"] | None, n_states: int) -> Outcome:
    if one.answer is None or reference is None:
        return one
    if one.answer.n_states != n_states:
        return Outcome(None, f"found {one.answer.n_states} states where {n_states} were asked for")
    return Outcome(one.answer.renamed(matched(reference, one.answer.states, n_states)))


def _nth(values: np.ndarray, n: int) -> float:
    return float(values[n]) if n < len(values) else float("nan")


def _escaped(text: str) -> str:
    for sign in "&%_#":
        text = text.replace(sign, f"\\{sign}")
    return text
