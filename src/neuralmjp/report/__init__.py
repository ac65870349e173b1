"""One HTML file that tells what was fitted to what, and how far it can be trusted. It needs no network.

tables     numbers with units and intervals, and as CSV
svg        small drawings whose parts tell their values
charts     the drawings of a fit
recording  the data and the hidden path, packed for browsing
verdict    what to think of it, in sentences
page       all of it in one file
networks   the same for reaction networks
"""

from pathlib import Path

from ..fitted import FittedMJP
from ..fitted_network import FittedNetwork
from ..io.files import replacing
from ..timeseries import TimeSeries
from .networks import network_report_of
from .page import Source, report_of
from .tables import Table
from .verdict import Finding

__all__ = ["Finding", "Source", "Table", "network_report_of", "report_of", "write_report"]


def write_report(
    fitted: FittedMJP | FittedNetwork, out: Path, *, data: TimeSeries | None = None, source: Source | None = None
) -> None:
    """One file that opens anywhere."""
    make = report_of if isinstance(fitted, FittedMJP) else network_report_of
    text = make(fitted, data=data, source=source or Source())  # type: ignore[arg-type]
    with replacing(out) as partial:
        partial.write_text(text, encoding="utf-8")
