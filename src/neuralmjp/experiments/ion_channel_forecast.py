"""How far ahead an ion channel can be seen: the paper's comparison of forecasts, after the second and inside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ..fitted import FittedMJP
from ..systems import Dataset
from ..timeseries import TimeSeries
from ..validation import Accuracy, accuracy
from .count_methods import looking_ahead
from .state_methods import Runs, means
from .tables import Line, Number, ResultTable, Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GIVEN = 100  # samples before a forecast
STEPS = (1, 10, 50, 100)
N_INSIDE = 25  # pieces of the training period
AFTER, INSIDE = "after the second", "25 pieces of it"
COLUMNS = (*(f"at {j}" for j in STEPS), "first 100")


@dataclass(frozen=True)
class Forecasts:
    """What each method expects, beside what came."""

    methods: dict[str, Runs]
    data: Dataset

    @cached_property
    def places(self) -> dict[str, TimeSeries]:
        assert self.data.prediction is not None
        train = self.data.train.data
        length = 2 * GIVEN
        whole = TimeSeries.from_arrays(
            np.arange(train.n_observations)[None] * float(np.diff(train.times[:2])[0]),
            train.values[None],
            time_unit=train.time_unit,
            value_names=train.value_names,
        )
        return {AFTER: self.data.prediction.data, INSIDE: whole.windows(length, drop_tail=True)[:N_INSIDE]}

    @cached_property
    def found(self) -> dict[str, dict[str, list[Accuracy]]]:
        """By place and method, of every run."""
        return {
            place: {
                method: [ahead(one, series) for one in runs.models if isinstance(one, FittedMJP)]
                for method, runs in self.methods.items()
            }
            for place, series in self.places.items()
        }

    def table(self) -> ResultTable:
        rows = []
        for place, methods in self.found.items():
            lines = [Line(method, self._numbers(each)) for method, each in methods.items() if each]
            rows.append(Row(place, tuple(lines)))
        return ResultTable(
            "Forecast of the current, root mean square error (pA)",
            COLUMNS,
            tuple(rows),
            f"{GIVEN} samples are given; at n: n samples later; first 100: mean over the first 100 steps; mean ± sd "
            "over runs; the paper shows this as a figure alone",
        )

    def _numbers(self, each: Sequence[Accuracy]) -> dict[str, Number]:
        values = [[*(one.at[j - 1] for j in STEPS), one.first(100)] for one in each]
        return {name: Number.over(x, 3) for name, x in zip(COLUMNS, np.array(values).T, strict=True)}

    def drawn(self) -> "Figure":
        """The paper's figure: error against how far ahead, after the second (left) and inside it (right)."""
        from matplotlib.figure import Figure

        from ..plots.palette import state_colour

        figure = Figure(figsize=(9, 3.5), layout="constrained")
        panels = np.atleast_1d(figure.subplots(1, 2, sharey=True)).ravel()
        for ax, (place, methods) in zip(panels, self.found.items(), strict=True):
            for k, (method, each) in enumerate(methods.items()):
                if each:
                    mean: Float[np.ndarray, "step"] = np.mean([one.at for one in each], axis=0)
                    ax.plot(np.arange(1, len(mean) + 1), mean, color=state_colour(k), label=method)
            ax.set_title(place)
            ax.set_xlabel("samples ahead")
        panels[0].set_ylabel("root mean square error (pA)")
        panels[-1].legend(frameon=False)
        return figure


def ahead(fitted: FittedMJP, series: TimeSeries) -> Accuracy:
    """The expected value of every sample after those that are given."""
    steps = range(1, int(series.lengths[0]) - GIVEN + 1)
    task = looking_ahead(series, GIVEN, steps)
    law = fitted.predict(task.given, list(task.times), samples=1).probabilities
    expected = law @ means(fitted)
    return accuracy(expected.reshape(task.values.shape), task.values)
