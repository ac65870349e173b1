"""Axon Binary Format, versions 1 and 2: each sweep of a patch-clamp recording is a series; times in seconds.

Sweeps keep their place in the recording, so that hum and drift go on from one to the next.
"""

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..timeseries import TimeSeries
from .arrays import from_arrays
from .columns import Request
from .extras import needed

_MAGIC = (b"ABF ", b"ABF2")
_QUANTITIES = {"A": "current", "V": "voltage"}


def read(path: Path, request: Request) -> TimeSeries:
    """Read the sweeps of one channel, in the unit that the file names."""
    request.only(("channel",), path, "an .abf file")
    with open(path, "rb") as file:
        if file.read(4) not in _MAGIC:
            raise InputError(f"{path}: is not an Axon Binary file; give it the extension of what it is")
    pyabf = load(path)
    try:
        recording = pyabf.ABF(str(path), loadData=False)
        _check_whole(path, recording)
        recording = pyabf.ABF(str(path))
    except InputError:
        raise
    except Exception as error:  # whatever the parser stumbles over
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(f"{path}: cannot be read as an Axon Binary file ({reason}); copy or export it again") from None
    channel = _channel(path, recording, request.channel)
    times, values = [], []
    for sweep in recording.sweepList:
        recording.setSweep(sweep, channel=channel)
        start = float(recording.sweepTimesSec[sweep])
        times.append(start + np.arange(len(recording.sweepY)) / recording.dataRate)
        values.append(np.asarray(recording.sweepY, np.float64))
    names = [f"sweep {sweep}" for sweep in recording.sweepList]
    try:
        return from_arrays(times, values, time_unit="s", names=names, value_names=[_label(recording, channel)])
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def load(path: Path) -> Any:
    """The library."""
    return needed("pyabf", "ephys", f"{path}: an .abf file")


def _check_whole(path: Path, recording: Any) -> None:
    """The header must not promise more samples than there are."""
    promised = recording.dataByteStart + recording.dataPointCount * recording.dataPointByteSize
    if recording.dataPointCount < 1 or recording.sweepCount < 1 or recording.dataRate <= 0:
        raise InputError(f"{path}: holds no samples; record or export it again")
    if promised > path.stat().st_size:
        raise InputError(f"{path}: is cut short: {path.stat().st_size} of {promised} bytes; copy it again")


def _channel(path: Path, recording: Any, asked: str | int | None) -> int:
    known = list(zip(recording.adcNames, recording.adcUnits, strict=True))
    listing = ", ".join(f"{number} {name!r} in {unit}" for number, (name, unit) in enumerate(known))
    if asked is None:
        if len(known) > 1:
            raise InputError(f"{path}: has {len(known)} channels; choose one with --channel: {listing}")
        return 0
    if str(asked).isdigit() and int(asked) < len(known):
        return int(asked)
    named = [number for number, (name, _) in enumerate(known) if name == asked]
    if len(named) != 1:
        raise InputError(f"{path}: no channel {asked!r}; there are {listing}")
    return named[0]


def _label(recording: Any, channel: int) -> str:
    """`current (pA)`; the channel's own name where the unit does not tell what is measured."""
    unit = " ".join(recording.adcUnits[channel].split())
    quantity = _QUANTITIES.get(unit[-1:]) or " ".join(recording.adcNames[channel].split()) or "value"
    return f"{quantity} ({unit})" if unit else quantity
