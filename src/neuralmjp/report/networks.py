"""The report of a reaction network: constants with intervals, and the counts behind the readings."""

from itertools import product

import numpy as np

from ..errors import InputError
from ..exact.lattice_decode import DecodedCounts
from ..fitted_network import FittedNetwork
from ..fitted_network_files import summary
from ..mjp.interval import interval_or_unknown
from ..timeseries import TimeSeries
from ..units import per
from . import charts, svg
from .page import Source, figure, page_of, repeat_tab, summed_up, table_html
from .tables import Table
from .verdict import Finding, network_findings

MOST_SERIES = 6  # drawn in a page


def network_report_of(fitted: FittedNetwork, *, data: TimeSeries | None, source: Source) -> str:
    """The page as text."""
    findings = [*network_findings(fitted), *source.findings]
    tables = [*source.tables, constants_of(fitted), *noise_of(fitted)]
    tabs = {"Result": result_tab(fitted, findings, tables, source)}
    if data is not None:
        tabs["Counts"] = counts_tab(fitted, data)
    tabs["Tables"] = "".join(table_html(table) for table in tables)
    if source.history:
        tabs["Training"] = figure(charts.training_curve(source.history), "The bound while training")
    tabs["Repeat it"] = repeat_tab(summary(fitted), source)
    title = f"{fitted.network.name} in {source.data or 'the data'}"
    return page_of(title, findings, tabs, None, fitted.network.species)


def constants_of(fitted: FittedNetwork) -> Table:
    found = interval_or_unknown(fitted.intervals, "parameters", fitted.constants)
    reactions = [fitted.reactions_of(name) for name in fitted.names]
    ends = (np.asarray(part, float).tolist() for part in (found.mean, found.lower, found.upper))
    rows = tuple(zip(fitted.names, *ends, reactions, strict=True))
    title = f"Rate constants ({per(fitted.time_unit)})"
    return Table("constants", title, ("", "value", "from", "to", "reaction"), rows)


def noise_of(fitted: FittedNetwork) -> list[Table]:
    """How counts are read, one table for each number that describes it."""
    tables, known = [], ", known" if fitted.readings.fixed is not None else ""
    for name, found in fitted.noise_intervals().items():
        ends = (np.asarray(part, float).ravel().tolist() for part in (found.mean, found.lower, found.upper))
        rows = tuple(zip(fitted.value_names, *ends, strict=False))
        tables.append(Table(f"noise-{name}", f"Noise: {name}{known}", ("", "value", "from", "to"), rows))
    return tables


def result_tab(fitted: FittedNetwork, findings: list[Finding], tables: list[Table], source: Source) -> str:
    exact = fitted.log_likelihood
    facts = {
        "engine": fitted.engine if fitted.engine == "exact" else f"{fitted.engine}, posterior {fitted.posterior}",
        "noise": fitted.readings.noise,
        "observations": str(fitted.n_observations),
        "log-likelihood": "out of reach" if exact is None else f"{exact:.2f}",
        "intervals": f"95 %, {fitted.uncertainty}" if fitted.uncertainty != "none" else "none",
        "fit": f"{fitted.seconds:.1f} s",
    }
    if fitted.elbo is not None:
        facts["bound"] = f"{fitted.elbo:.2f}"
    shown = next(table for table in tables if table.name == "constants")
    drawn = [figure(charts.by_rows(shown, shown.title, per(fitted.time_unit), log=True), shown.title)]
    first = "".join(table_html(table) for table in source.tables)
    return summed_up(findings, first, facts, drawn)


def counts_tab(fitted: FittedNetwork, data: TimeSeries) -> str:
    """Every species in the first series: what was read, and the counts behind it."""
    chosen = range(min(len(data), MOST_SERIES))
    some = data[: len(chosen)]
    try:
        decoded = fitted.decode(some)
    except InputError as reason:
        return f"<p>{svg.escape(str(reason))}</p>"
    parts = [drawn_counts(fitted, some, decoded, k, s) for k, s in product(chosen, range(len(decoded.species)))]
    left = len(data) - len(chosen)
    return "".join(parts) + (f"<p>{left} more series are not in this page.</p>" if left else "")


def drawn_counts(fitted: FittedNetwork, data: TimeSeries, decoded: DecodedCounts, k: int, s: int) -> str:
    rows = slice(int(data.offsets[k]), int(data.offsets[k + 1]))
    times, species = data.times[rows].tolist(), decoded.species[s]
    curves = [
        ("expected", times, decoded.mean[rows, s].tolist()),
        ("2.5 %", times, decoded.lower[rows, s].astype(float).tolist()),
        ("97.5 %", times, decoded.upper[rows, s].astype(float).tolist()),
    ]
    if species in data.value_names:
        curves.append(("read", times, data.values[rows, data.value_names.index(species)].tolist()))
    words = f"{species} in series {data.names[k]}: what was read, and the counts behind it"
    return figure(svg.lines(curves, f"time ({fitted.time_unit})", "count", words), words)
