"""Small drawings as SVG text. Every mark carries its value as a title, which browsers show under the pointer."""

import math
from collections.abc import Sequence
from html import escape
from itertools import pairwise

import numpy as np

from ..plots.palette import TRACE, state_colour
from ..units import per
from .tables import shown

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 560, 300, 86, 44, 12


def drawing(body: Sequence[str], alt: str, *, width: int = WIDTH, height: int = HEIGHT) -> str:
    """A whole drawing, with words for those who do not see it."""
    text = "\n".join(body)
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(alt, quote=True)}" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{escape(alt)}</title>{text}</svg>'
    )


def label(x: float, y: float, text: str, *, anchor: str = "middle", turned: bool = False, kind: str = "label") -> str:
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}"{turn}>{escape(text)}</text>'


def mark(shape: str, title: str) -> str:
    """A shape that tells something; it can be reached by keyboard."""
    return f'<g tabindex="0"><title>{escape(title)}</title>{shape}</g>'


class Axis:
    """From values to places, with ticks that people like."""

    def __init__(self, low: float, high: float, start: float, end: float, *, log: bool = False):
        if log:
            low, high = math.log10(low), math.log10(high)
        if high - low < 1e-12 * max(abs(low), abs(high), 1e-300):
            low, high = low - 0.5, high + 0.5
        self.low, self.high, self.start, self.end, self.log = low, high, start, end, log

    def __call__(self, value: float) -> float:
        if self.log:
            value = math.log10(max(value, 1e-300))
        share = (value - self.low) / (self.high - self.low)
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def ticks(self) -> list[float]:
        if self.log:
            decades = range(math.floor(self.low), math.ceil(self.high) + 1)
            inside = [m * 10.0**k for k in decades for m in (1, 2, 5) if self.low <= math.log10(m) + k <= self.high]
            tens = [x for x in inside if math.isclose(math.log10(x), round(math.log10(x)))]
            few = inside if len(inside) <= 6 else tens
            return few[:: -(-len(few) // 7)] if few else [10.0 ** ((self.low + self.high) / 2)]
        span = self.high - self.low
        size = 10 ** math.floor(math.log10(span / 4))
        step = next(size * k for k in (1, 2, 5, 10) if span / (size * k) <= 6)
        first = math.ceil(self.low / step)
        return [k * step for k in range(first, math.floor(self.high / step) + 1)]


def frame(x: Axis | None, y: Axis | None, x_label: str, y_label: str) -> list[str]:
    """Ticks with grid lines, and what the axes are."""
    parts = [f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - 12}" height="{HEIGHT - TOP - BOTTOM}" class="frame"/>']
    for tick in x.ticks() if x else ():
        at = x(tick) if x else 0.0
        parts.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" class="grid"/>')
        parts.append(label(at, HEIGHT - BOTTOM + 16, shown(float(tick)), kind="tick"))
    for tick in y.ticks() if y else ():
        at = y(tick) if y else 0.0
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - 12}" y1="{at:.1f}" y2="{at:.1f}" class="grid"/>')
        parts.append(label(LEFT - 6, at + 4, shown(float(tick)), anchor="end", kind="tick"))
    parts.append(label((LEFT + WIDTH) / 2, HEIGHT - 8, x_label))
    parts.append(label(14, (HEIGHT - BOTTOM) / 2, y_label, turned=True))
    return parts


def dots(names: Sequence[str], rows: Sequence[tuple[float, float, float]], unit: str, alt: str, *, log: bool) -> str:
    """A value with its interval for every name, one above the other."""
    seen = [x for row in rows for x in row if math.isfinite(x) and (x > 0 or not log)]
    if not seen:
        return ""
    least, most = min(seen), max(seen)
    x = (
        Axis(least / 1.2, most * 1.2, LEFT, WIDTH - 12, log=True)
        if log
        else Axis(min(least, 0), most, LEFT, WIDTH - 12)
    )
    step = (HEIGHT - TOP - BOTTOM) / len(rows)
    parts = frame(x, None, unit, "")
    for k, (name, (mean, lower, upper)) in enumerate(zip(names, rows, strict=True)):
        y, colour = TOP + step * (k + 0.5), state_colour(k)
        parts.append(label(LEFT - 6, y + 4, name, anchor="end", kind="tick"))
        if not math.isfinite(mean):
            continue
        shape = f'<circle cx="{x(mean):.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>'
        words = f"{name}: {shown(mean)} {unit}"
        if not math.isnan(lower):
            far = upper if math.isfinite(upper) else most * 10
            ends = f'x1="{x(lower):.1f}" x2="{x(far):.1f}" y1="{y:.1f}" y2="{y:.1f}"'
            shape = f'<line {ends} stroke="{colour}" stroke-width="3"/>' + shape
            words += f", 95 % {shown(lower)} to {shown(upper)}"
        parts.append(mark(shape, words))
    return drawing(parts, alt)


def lines(
    curves: Sequence[tuple[str, Sequence[float], Sequence[float]]],
    x_label: str,
    y_label: str,
    alt: str,
    *,
    log_x: bool = False,
    log_y: bool = False,
    stairs: Sequence[tuple[str, Sequence[float], Sequence[float]]] = (),
) -> str:
    """Curves, and histograms as stairs (edges, heights), each with a colour and its name at the end."""
    every = [*curves, *stairs]
    xs = [v for _, x, _ in every for v in x if math.isfinite(v) and (v > 0 or not log_x)]
    ys = [v for _, _, y in every for v in y if math.isfinite(v) and (v > 0 or not log_y)]
    if not xs or not ys:
        return ""
    x = Axis(min(xs), max(xs), LEFT, WIDTH - 12, log=log_x)
    y = Axis(min(ys), max(ys), HEIGHT - BOTTOM, TOP, log=log_y)
    parts = frame(x, y, x_label, y_label)
    for k, (name, edges, heights) in enumerate(stairs):
        for (left, right), height in zip(pairwise(edges), heights, strict=True):
            if height > 0 or not log_y:
                top = y(height)
                size = f'width="{max(x(right) - x(left), 0.5):.1f}" height="{max(y.start - top, 0.5):.1f}"'
                shape = f'<rect x="{x(left):.1f}" y="{top:.1f}" {size} fill="{state_colour(k)}" opacity="0.35"/>'
                parts.append(
                    mark(shape, f"{name}: {shown(float(height))} from {shown(float(left))} to {shown(float(right))}")
                )
    for k, (name, places, values) in enumerate(curves):
        there = [(a, b) for a, b in zip(places, values, strict=True) if math.isfinite(b) and (b > 0 or not log_y)]
        path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in there)
        shape = f'<polyline points="{path}" fill="none" stroke="{state_colour(k)}" stroke-width="2"/>'
        parts.append(mark(shape, f"{name}: {shown(float(there[-1][1]))} at the end" if there else name))
        parts.append(label(WIDTH - 18, TOP + 16 * (k + 1), name, anchor="end", kind="key"))
        parts.append(f'<rect x="{WIDTH - 16}" y="{TOP + 16 * k + 8}" width="4" height="10" fill="{state_colour(k)}"/>')
    return drawing(parts, alt)


def network(rates: np.ndarray, law: np.ndarray, unit: str, alt: str, names: Sequence[str]) -> str:
    """States on a circle, as large as they are frequent; arrows as thick as jumps are."""
    n, size = len(rates), 420
    angle = 2 * np.pi * np.arange(n) / n - np.pi / 2
    middle, around = size / 2, size / 2 - 64
    places = np.stack([middle + around * np.cos(angle), middle + around * np.sin(angle)], 1)
    radius = 14 + 26 * np.sqrt(law / law.max())
    flow = rates * law[:, None]
    most = flow.max()
    parts = [
        f'<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="5" markerHeight="5" '
        f'orient="auto-start-reverse"><path d="M0,0 L8,4 L0,8 z" fill="{TRACE}"/></marker></defs>'
    ]
    for i, j in np.argwhere((rates > 0) & (flow > 1e-4 * most)).tolist():
        way = places[j] - places[i]
        way = way / np.linalg.norm(way)
        side = np.array([-way[1], way[0]])
        start, end = places[i] + radius[i] * way + 5 * side, places[j] - (radius[j] + 3) * way + 5 * side
        bend = (start + end) / 2 + 16 * side
        thick = 1 + 4 * (flow[i, j] / most) ** 0.5
        shape = (
            f'<path d="M{start[0]:.1f},{start[1]:.1f} Q{bend[0]:.1f},{bend[1]:.1f} {end[0]:.1f},{end[1]:.1f}" '
            f'fill="none" stroke="{TRACE}" stroke-width="{thick:.1f}" marker-end="url(#tip)"/>'
        )
        parts.append(mark(shape, f"{names[i]} → {names[j]}: {shown(float(rates[i, j]))} {per(unit)}"))
        if n <= 5:
            at = bend + 12 * side
            parts.append(label(at[0], at[1] + 4, shown(float(f"{rates[i, j]:.3g}")), kind="tick"))
    for k, (x, y) in enumerate(places.tolist()):
        shape = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius[k]:.1f}" fill="{state_colour(k)}"/>'
        shape += label(x, y + 5, names[k], kind="state")
        parts.append(mark(shape, f"state {names[k]}: {shown(float(law[k]))} of the time"))
    return drawing(parts, alt, width=size, height=size)
