"""One HTML file: complete, harmless, and alive in a real browser."""

import json
import re
import shutil
import subprocess
from base64 import b64decode
from html.parser import HTMLParser

import numpy as np
import pytest

from neuralmjp import ExactMJP, TimeSeries, mjp
from neuralmjp.report import Source, report_of, write_report
from neuralmjp.report import page as page_module
from neuralmjp.report.recording import extremes, packed
from neuralmjp.report.svg import Axis
from neuralmjp.report.tables import shown, tables_of
from neuralmjp.report.verdict import findings_of, sentence

NASTY = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def world():
    """A clear two-state fit; series and values have names that no page should run."""
    rates = np.array([[0.0, 0.1], [0.2, 0.0]])
    rng = np.random.default_rng(1)
    stay = np.asarray(mjp.transition_matrix(rates, 1.0))
    states = np.zeros((2, 600), int)
    for k in range(1, 600):
        states[:, k] = rng.random(2) < stay[states[:, k - 1], 1]
    values = (5.0 * states + rng.normal(size=states.shape))[..., None]
    times = np.tile(np.arange(600.0), (2, 1))
    data = TimeSeries.from_arrays(times, values, time_unit="ms", value_names=(NASTY,), names=[NASTY, "b"])
    return data, ExactMJP(2, restarts=1).fit(data)


@pytest.fixture(scope="module")
def page(world):
    data, fitted = world
    return report_of(fitted, data=data, source=Source(data=f"{NASTY}.csv", command=f"neuralmjp fit {NASTY}"))


class Tags(HTMLParser):
    """Opened and closed as HTML wants it; what a page would load."""

    EMPTY = ("meta", "link")

    def __init__(self):
        super().__init__()
        self.open, self.scripts, self.loaded, self.ids = [], 0, [], []

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        self.scripts += tag == "script"
        self.loaded += [value for name, value in attrs if name in ("src", "href") and not value.startswith("data:")]
        self.ids += [known["id"]] if "id" in known else []
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_names_from_the_data_stay_text(page):
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert tags.scripts == 1
    assert tags.loaded == []  # nothing comes from anywhere else
    assert NASTY not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;.csv" in page
    tips = [one for one in tags.ids if one == "tip"]
    assert len(set(tags.ids)) == len(tags.ids) - max(len(tips) - 1, 0)


def test_every_table_can_be_taken_along(world, page):
    _, fitted = world
    names = re.findall(r'download="([^"]+)"', page)
    assert {"rates.csv", "stationary-law.csv", "timescales.csv", "first-passage.csv", "result.json"} <= set(names)
    rates = next(table for table in tables_of(fitted) if table.name == "rates")
    assert rates.to_csv().splitlines()[0] == "jump,value,from,to"
    assert float(rates.to_csv().splitlines()[1].split(",")[1]) == fitted.rates[0, 1]
    assert "(per ms)" in rates.title


def test_verdict(world):
    _, fitted = world
    assert sentence(findings_of(fitted)) in (
        "No fault was found.",
        "No fault was found; look at the remarks before you use the numbers.",
    )
    from dataclasses import replace

    lost = replace(fitted, converged=False, message="stopped too early")
    assert "Do not rely" in sentence(findings_of(lost))
    assert findings_of(lost)[0].words == "Not converged: stopped too early."


def test_a_state_that_is_never_left_is_no_fault():
    """In the end all are there; that says nothing of how often the others are visited."""
    times = np.tile(np.arange(6.0), (20, 1))
    states = np.minimum(np.arange(6) // np.arange(1, 21)[:, None], 2)
    chain = [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    fitted = ExactMJP(3, emission="categorical", mask=chain).fit(TimeSeries.from_arrays(times, states))
    words = [one.words for one in findings_of(fitted)]
    assert "State 2 is never left, as the mask says: in the end all are there." in words
    assert not any("never visited" in word for word in words)


def test_dwell_times_are_of_whole_visits(world):
    data, fitted = world
    decoded = fitted.decode(data)
    visits, others = decoded.dwells(data)
    assert np.mean(visits) == pytest.approx(10, rel=0.4)
    flips = sum(int((np.diff(part) != 0).sum()) for part in decoded.states.reshape(2, -1))
    assert len(visits) + len(others) == flips - 2


def test_events_can_be_taken_along(world, page, monkeypatch):
    data, fitted = world
    events = fitted.events(data)
    (link,) = re.findall('download="events.csv" href="data:text/csv;base64,([^"]*)"', page)
    assert b64decode(link).decode() == events.to_frame().to_csv(index=False)
    monkeypatch.setattr(page_module, "MOST_EVENTS", len(events) - 1)
    heavy = page_module.event_list(events)
    assert "events.csv" not in heavy
    assert f"{len(events)} events: neuralmjp decode --events writes them" in heavy


def test_long_recordings_keep_their_extremes(world, monkeypatch):
    values = np.random.default_rng(0).normal(size=1000)
    kept = extremes(values, 10)
    assert (np.diff(kept) >= 0).all()
    assert values[kept].max() == values.max()
    assert values[kept].min() == values.min()
    assert len(kept) == 200
    from neuralmjp.report import recording

    monkeypatch.setattr(recording, "MOST_POINTS", 100)
    data, fitted = world
    found = packed(data, fitted.decode(data))
    assert found["thinned"]
    json.dumps(found)


def test_axes():
    axis = Axis(0.0, 10.0, 0.0, 100.0)
    assert axis(5.0) == 50.0
    assert axis.ticks() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    assert Axis(0.5, 2000.0, 0, 1, log=True).ticks() == [1.0, 10.0, 100.0, 1000.0]
    assert Axis(3.0, 3.0, 0, 1).ticks()
    assert shown(float("inf")) == "∞"


CHECKS = """
<script>
window.addEventListener("load", () => {
  const said = [];
  const check = (name, holds) => said.push(`${name}:${holds}`);
  const tabs = [...document.querySelectorAll('[role="tab"]')];
  tabs[1].click();
  check("tab", !document.getElementById("panel-1").hidden && document.getElementById("panel-0").hidden);
  tabs[1].dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
  check("keys", !document.getElementById("panel-2").hidden);
  tabs[1].click();
  const before = viewer.to - viewer.from;
  document.getElementById("zoom-in").click();
  check("zoom", viewer.to - viewer.from < before);
  viewer.move(0.5);
  viewer.tell(0.5);
  check("reading", document.getElementById("reading").textContent.includes("probability"));
  const ink = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  check("drawn", new Set(ink).size > 10);
  const select = document.getElementById("series");
  select.value = "1";
  select.dispatchEvent(new Event("change"));
  check("series", viewer.series.end === 599);
  tabs[0].click();
  document.querySelector(".enlarge").click();
  check("enlarged", large.open && large.querySelector("svg") !== null);
  large.close();
  check("narrow", document.documentElement.scrollWidth <= window.innerWidth + 1);
  const result = document.createElement("pre");
  result.id = "said";
  result.textContent = said.join(" ");
  document.body.append(result);
});
window.addEventListener("error", (event) => {
  const result = document.createElement("pre");
  result.textContent = `page-error:${event.message}`;
  document.body.append(result);
});
</script>
"""
BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed (apt install chromium)")


def browse(*words):
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


@browser
@pytest.mark.parametrize("size", ["1200,900", "390,844"], ids=["desk", "phone"])
def test_alive_in_a_browser(page, tmp_path, size):
    file = tmp_path / "report.html"
    file.write_text(page.replace("<body>", "<body>" + CHECKS))
    done = browse(
        f"--window-size={size}", "--virtual-time-budget=3000", "--dump-dom", "--enable-logging=stderr", file.as_uri()
    )
    assert "page-error" not in re.sub(r"<script.*?</script>", "", done.stdout, flags=re.DOTALL)
    assert "CONSOLE" not in done.stderr
    (said,) = re.findall(r'<pre id="said">(.*?)</pre>', done.stdout)
    found = dict(one.split(":") for one in said.split())
    assert len(found) == 8
    assert all(value == "true" for value in found.values()), found


@browser
def test_screenshot_is_not_blank(world, tmp_path):
    from matplotlib.image import imread

    data, fitted = world
    file, picture = tmp_path / "report.html", tmp_path / "page.png"
    write_report(fitted, file, data=data)
    browse("--window-size=1200,900", f"--screenshot={picture}", file.as_uri())
    seen = imread(picture)[..., :3]
    assert seen.std() > 0.05
    assert len(np.unique(seen.reshape(-1, 3), axis=0)) > 50
