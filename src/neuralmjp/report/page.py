"""All of a report in one HTML file: styles, script, drawings, tables and data inside it."""

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import Any

from .._version import __version__
from ..events import Events
from ..fitted import FittedMJP
from ..fitted_files import plain, summary
from ..plots.palette import state_colour
from ..timeseries import TimeSeries
from ..units import per
from . import charts
from .recording import packed
from .tables import Table, stays_of, tables_of
from .verdict import Finding, findings_of, sentence

MOST_EVENTS = 10_000  # that go into a page, some 100 bytes each
SIGNS = {True: ("good", "✓"), None: ("look", "!"), False: ("bad", "✗")}


@dataclass(frozen=True)
class Source:
    """Where a fit comes from, as far as is known.

    Attributes:
        data: name of the file.
        command: that made the fit.
        configuration: of the training.
        history: of the training, round by round.
        findings: of a validation, sentence by sentence.
        tables: more of them, shown first.
    """

    data: str = ""
    command: str = ""
    configuration: dict[str, Any] = field(default_factory=dict)
    history: Sequence[dict[str, Any]] = ()
    findings: Sequence[Finding] = ()
    tables: Sequence[Table] = ()


def report_of(fitted: FittedMJP, *, data: TimeSeries | None, source: Source) -> str:
    """The page as text."""
    findings = [*findings_of(fitted), *source.findings]
    tables = {table.name: table for table in (*source.tables, *tables_of(fitted))}
    decoded = None if data is None else fitted.decode(data)
    tabs = {"Result": result_tab(fitted, findings, tables, source)}
    recording = None
    if data is not None and decoded is not None:
        recording = packed(data, decoded)
        tabs["Hidden path"] = path_tab(recording, fitted)
        visits = [charts.dwell_chart(fitted, each, k) for k, each in enumerate(decoded.dwells(data))]
        named = zip(visits, fitted.state_names, strict=True)
        drawn = "".join(figure(one, f"Dwell times of state {name}") for one, name in named if one)
        listed = event_list(fitted.events(data, decoded))
        tabs["Dwell times"] = listed + (drawn or "<p>Too few whole visits to draw.</p>")
    tabs["Tables"] = "".join(table_html(table) for table in tables.values())
    if source.history:
        tabs["Training"] = figure(charts.training_curve(source.history), "The bound while training")
    tabs["Repeat it"] = repeat_tab(summary(fitted), source)
    title = f"{fitted.n_states} states in {source.data or 'the data'}"
    return page_of(title, findings, tabs, recording, fitted.state_names)


def page_of(
    title: str,
    findings: Sequence[Finding],
    tabs: dict[str, str],
    recording: dict[str, Any] | None,
    names: Sequence[str],
) -> str:
    """Tabs below a verdict, with all that they need."""
    known = {"recording": recording, "colours": [state_colour(k) for k in range(len(names))], "names": list(names)}
    script = "".join(f"const {name} = {_safe(value)};\n" for name, value in known.items())
    return _asset("page.html").format(
        title=escape(title),
        style=_asset("report.css"),
        head=escape(title),
        verdict=escape(sentence(findings)),
        menu="".join(
            f'<button role="tab" id="tab-{k}" aria-controls="panel-{k}" aria-selected="{str(k == 0).lower()}" '
            f'tabindex="{0 if k == 0 else -1}">{escape(name)}</button>'
            for k, name in enumerate(tabs)
        ),
        panels="".join(
            f'<section role="tabpanel" id="panel-{k}" aria-labelledby="tab-{k}" {"hidden" * (k > 0)}>{body}</section>'
            for k, body in enumerate(tabs.values())
        ),
        version=escape(__version__),
        script=script + _asset("report.js"),
    )


def result_tab(fitted: FittedMJP, findings: Sequence[Finding], tables: dict[str, Table], source: Source) -> str:
    unit = fitted.time_unit
    engine = fitted.engine if fitted.engine == "exact" else f"{fitted.engine}, posterior {fitted.posterior}"
    facts = {
        "engine": engine,
        "emission": fitted.emission.name,
        "observations": str(fitted.n_observations),
        "log-likelihood": f"{fitted.log_likelihood:.2f}",
        "AIC, BIC": f"{fitted.aic:.1f}, {fitted.bic:.1f}",
        "intervals": f"95 %, {fitted.uncertainty}" if fitted.uncertainty != "none" else "none",
        "fit": f"{fitted.seconds:.1f} s",
    }
    drawn = [
        figure(charts.transition_network(fitted), "Transition network: rates on the arrows, size is share of time")
    ]
    for name, words, log in (
        ("rates", f"jump rate ({per(unit)})", True),
        ("stationary-law", "share of time", False),
        ("timescales", f"relaxation time ({unit})", True),
        ("first-passage", f"mean first-passage time ({unit})", True),
    ):
        if name in tables:
            drawn.append(figure(charts.by_rows(tables[name], tables[name].title, words, log=log), tables[name].title))
    first = "".join(table_html(table) for table in source.tables)
    return summed_up(findings, first, facts, drawn)


def summed_up(findings: Sequence[Finding], first: str, facts: dict[str, str], drawn: Sequence[str]) -> str:
    """What to think of it, what was done, and the figures."""
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    said = "".join(
        f'<li class="{kind}"><span aria-hidden="true">{sign}</span> {escape(one.words)}</li>'
        for one in findings
        for kind, sign in [SIGNS[one.good]]
    )
    figures = f'<div class="figures">{"".join(drawn)}</div>'
    return f'<ul class="findings">{said}</ul>{first}<dl class="facts">{listed}</dl>{figures}'


def path_tab(recording: dict[str, Any], fitted: FittedMJP) -> str:
    options = "".join(f'<option value="{k}">{escape(name)}</option>' for k, name in enumerate(recording["names"]))
    keys = "".join(
        f'<span class="key"><i style="background:{state_colour(k)}"></i>state {escape(name)}</span>'
        for k, name in enumerate(fitted.state_names)
    )
    notes = []
    if recording["left_out"]:
        notes.append(f"{recording['left_out']} more series are not in this page.")
    if recording["thinned"]:
        notes.append("Of every few observations the least and the largest are kept here; the path is whole.")
    return f"""
<div class="controls"><label>series <select id="series">{options}</select></label>
<button id="zoom-in">zoom in</button><button id="zoom-out">zoom out</button>
<button id="left" aria-label="earlier">◀</button><button id="right" aria-label="later">▶</button>
<button id="all">all</button></div>
<canvas id="trace" tabindex="0" role="img" aria-label="Recording and hidden path: arrow keys move, + and - zoom.">
</canvas><p id="reading" aria-live="polite"></p><p>{keys}</p><p>{escape(" ".join(notes))}</p>"""


def event_list(events: Events) -> str:
    """A summary by state, and all of them to be taken along, unless they would make the page heavy."""
    if len(events) > MOST_EVENTS:
        link = f"{len(events)} events: neuralmjp decode --events writes them."
    else:
        link = download("events.csv", events.to_frame().to_csv(index=False), "text/csv") + ": a row per stay"
    return f"{table_html(stays_of(events))}<p>{link}</p>"


def repeat_tab(known: dict[str, Any], source: Source) -> str:
    parts = []
    if source.command:
        parts.append(f"<h3>Command</h3><pre>{escape(source.command)}</pre>")
    if source.configuration:
        parts.append(f"<h3>Training</h3><pre>{escape(json.dumps(plain(source.configuration), indent=1))}</pre>")
    link = download("result.json", json.dumps(known, indent=1), "application/json")
    parts.append(f"<h3>Result</h3><p>{link}: every number with its interval.</p>")
    versions = ", ".join(f"{name} {number}" for name, number in known["versions"].items())
    parts.append(f"<p>seed {escape(str(known['seed']))}; {escape(versions)}</p>")
    return "".join(parts)


def table_html(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.headings)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.shown())
    link = download(f"{table.name}.csv", table.to_csv(), "text/csv")
    return (
        f"<h3>{escape(table.title)}</h3><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{link}</p>"
    )


def figure(drawing: str, words: str) -> str:
    """A drawing that opens large."""
    if not drawing:
        return ""
    return (
        f'<figure><button class="enlarge" aria-label="enlarge: {escape(words, quote=True)}">{drawing}</button>'
        f"<figcaption>{escape(words)}</figcaption></figure>"
    )


def download(name: str, text: str, kind: str) -> str:
    data = b64encode(text.encode()).decode()
    return f'<a download="{escape(name, quote=True)}" href="data:{kind};base64,{data}">{escape(name)}</a>'


def _safe(value: Any) -> str:
    """JSON that cannot end the script it stands in."""
    return json.dumps(plain(value)).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _asset(name: str) -> str:
    return (files("neuralmjp.report") / "assets" / name).read_text(encoding="utf-8")
