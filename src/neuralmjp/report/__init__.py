"""One HTML file that tells what was fitted to what, and how far it can be trusted. It needs no network.

tables     numbers with units and intervals, and as CSV
svg        small drawings whose parts tell their values
charts     the drawings of a fit
recording  the data and the hidden path, packed for browsing
verdict    what to think of it, in sentences
page       all of it in one file
"""

from .page import Source, report_of, write_report
from .tables import Table
from .verdict import Finding

__all__ = ["Finding", "Source", "Table", "report_of", "write_report"]
