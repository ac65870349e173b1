"""`neuralmjp contrast`: what differs between two fits, say of a drug and of its control."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..contrasts import Contrast, Entry, contrast
from ..errors import InputError
from ..io.files import replacing
from ..io.frames import write_frame
from ..mjp.interval import Interval
from ..whole_files import write_whole_text
from .runs import load_any
from .show import console, number, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IN_FILES_ALONE = ("Mean first-passage times",)  # sections of which the terminal says nothing


def run(first: Path, second: Path, *, names: str | None, out: Path | None, json_file: Path | None) -> None:
    found = contrast(load_any(first), load_any(second), names_of((first, second), names))
    show(found)
    if json_file is not None:
        write_whole_text(json_file, json.dumps(as_json(found), indent=2, allow_nan=False) + "\n")
        console().print(f"result -> {json_file}", soft_wrap=True)
    if out is not None:
        keep(found, out)


def names_of(folders: tuple[Path, Path], typed: str | None) -> tuple[str, ...]:
    """As they were typed, else those of the folders; with the folders around them where these are alike."""
    if typed is not None:
        names = tuple(name.strip() for name in typed.split(","))
        if len(names) != 2 or not all(names):
            raise InputError(f"--names takes two names, such as control,drug; got {typed!r}")
        return names
    whole = [folder.resolve() for folder in folders]
    if whole[0] == whole[1]:
        raise InputError(f"{folders[0]} and {folders[1]} are one fit: name two, of different data")
    names = tuple(folder.name for folder in whole)
    return names if names[0] != names[1] else tuple(str(Path(*folder.parts[-2:])) for folder in whole)


def show(found: Contrast) -> None:
    """A table per section, after the answer to whether anything differs at all."""
    screen, (one, two), all_rates = console(), found.names, found.together
    if np.isfinite(found.p):
        how = []
        if all_rates.degrees:
            how.append(f"chi-square {all_rates.chi_square:.2f} on {all_rates.degrees} degrees of freedom")
        if all_rates.left_out:
            alone = len(all_rates.left_out) == 1
            why = "by itself, since it" if alone else "by themselves, since they"
            how.append(f"{', '.join(all_rates.left_out)} {why} may be zero")
        screen.print(f"all rates together: p = {found.p:.2g} ({'; '.join(how)})", soft_wrap=True)
    for title in found.sections:
        if title.startswith(IN_FILES_ALONE):
            continue
        entries = found.section(title)
        change = f"{two} / {one}" if entries[0].measure == "ratio" else f"{two} - {one}"
        rows = [[entry.name, *(number(x) for x in told(entry))] for entry in entries]
        screen.print(table(f"{title}, 95 %", ["", one, two, change, "from", "to", "p"], rows))
    for note in found.notes:
        screen.print(f"note: {note}", soft_wrap=True)


def told(entry: Entry) -> list[float]:
    change = entry.change
    return [float(x) for x in (entry.first.mean, entry.second.mean, change.mean, change.lower, change.upper, entry.p)]


def as_json(found: Contrast) -> dict[str, Any]:
    """Every number; null where one is not known."""

    def known(value: float) -> float | None:
        return float(value) if np.isfinite(value) else None

    def ends(interval: Interval) -> dict[str, float | None]:
        return {name: known(getattr(interval, name)) for name in ("mean", "lower", "upper")}

    (one, two), rates = found.names, found.together
    return {
        "names": [one, two],
        "all_rates": {
            "p": known(rates.p),
            "chi_square": known(rates.chi_square),
            "degrees": rates.degrees,
            "left_out": list(rates.left_out),
        },
        "entries": [
            {
                "section": entry.section,
                "name": entry.name,
                one: ends(entry.first),
                two: ends(entry.second),
                "measure": entry.measure,
                "change": ends(entry.change),
                "p": known(entry.p),
            }
            for entry in found.entries
        ],
        "notes": list(found.notes),
    }


def keep(found: Contrast, folder: Path) -> None:
    """The table, and the figure."""
    folder.mkdir(parents=True, exist_ok=True)
    write_frame(found.to_frame(), folder / "contrast.csv")
    with replacing(folder / "contrast.png") as partial:
        drawn(found).savefig(partial, dpi=130)
    console().print(f"table and figure -> {folder}", soft_wrap=True)


def drawn(found: Contrast) -> "Figure":
    """All ratios, a panel per section."""
    from matplotlib.figure import Figure

    from ..plots import plot_contrast

    one, two = found.names
    chosen = [title for title in found.sections if found.section(title)[0].measure == "ratio"]
    sizes = [len(found.section(title)) + 1.5 for title in chosen]
    figure = Figure(figsize=(6.4, 0.28 * sum(sizes) + 0.6), layout="constrained")
    panels = figure.subplots(len(chosen), 1, squeeze=False, sharex=True, height_ratios=sizes)[:, 0]
    for title, ax in zip(chosen, panels, strict=True):
        entries = found.section(title)
        mean, lower, upper = np.array([[x.mean, x.lower, x.upper] for x in (entry.change for entry in entries)]).T
        sure = np.array([entry.p for entry in entries])
        plot_contrast([entry.name for entry in entries], Interval(mean, lower, upper), ax, sure=sure, label="")
        ax.set_title(title, fontsize=9, loc="left")
    panels[-1].set_xlabel(f"{two} / {one}")
    return figure
