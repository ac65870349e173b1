"""Public data sets by name, downloaded whole or not at all, and checked."""

import hashlib
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from .errors import InputError
from .io.columns import Request
from .io.files import replacing
from .io.npz import read

_PIECE = 1 << 16
_PATIENCE = 30.0  # seconds without an answer


@dataclass(frozen=True)
class Source:
    """Where a data set lies, and what is known of it: an .npz of unnamed arrays, one per series."""

    url: str
    n_bytes: int
    md5: str  # as its own catalogue states it; it tells a damaged file, which is all that numbers need
    shape: tuple[int, int]
    n_series: int


# Catalogue: https://github.com/markovmodel/mdshare (mdshare/data/mdshare-catalogue.yaml); CC BY 4.0.
SOURCES = {
    "adp": Source(
        url="http://ftp.imp.fu-berlin.de/pub/cmb-data/alanine-dipeptide-3x250ns-backbone-dihedrals.npz",
        n_bytes=6_000_544,
        md5="3fa7c72ba512213a3860f9691602cdc7",
        shape=(250_000, 2),
        n_series=3,
    )
}


def fetch(
    name: str,
    out: Path,
    *,
    source: Source | None = None,
    progress: Callable[[str, float], None] = lambda *_: None,
) -> str:
    """Download a data set into the file `out`, and return its SHA-256.

    Args:
        name: "adp": backbone dihedrals of alanine dipeptide, 3 x 250 ns, a frame per ps (mdshare).
        out: file to write, .npz; nothing is left there unless all is well.
        source: of another copy.
        progress: told the stage and the share that is done.
    """
    if name not in SOURCES:
        raise InputError(f"no data set {name!r}; there is {', '.join(SOURCES)}")
    if out.suffix.lower() != ".npz":
        raise InputError(f"{out}: the data set {name} is an .npz file; let --out end so")
    source = source or SOURCES[name]
    with replacing(out) as temporary:
        sha256 = _download(source, temporary, progress)
        _check_structure(source, temporary)
    return sha256


def _download(source: Source, path: Path, progress: Callable[[str, float], None]) -> str:
    md5, sha256, n_bytes = hashlib.md5(usedforsecurity=False), hashlib.sha256(), 0
    try:
        with urllib.request.urlopen(source.url, timeout=_PATIENCE) as answer, open(path, "wb") as file:
            # One byte more than there should be tells a longer file without filling the disk.
            while piece := answer.read(min(_PIECE, source.n_bytes + 1 - n_bytes)):
                file.write(piece)
                md5.update(piece)
                sha256.update(piece)
                n_bytes += len(piece)
                progress("downloading", n_bytes / source.n_bytes)
    except urllib.error.HTTPError as error:
        error.close()
        raise InputError(f"{source.url}: the server answers {error.code} {error.reason}; try again later") from None
    except urllib.error.URLError as error:
        raise InputError(f"{source.url}: cannot be reached ({error.reason}); is this machine online?") from None
    except (HTTPException, TimeoutError, ConnectionError) as error:
        reason = str(error) or type(error).__name__
        raise InputError(f"{source.url}: the connection broke off ({reason}); try again") from None
    if n_bytes < source.n_bytes:
        raise InputError(f"{source.url}: cut short after {n_bytes} of {source.n_bytes} bytes; try again")
    if n_bytes > source.n_bytes or md5.hexdigest() != source.md5:
        raise InputError(
            f"{source.url}: is not the file that its catalogue describes (other checksum); try again later"
        )
    return sha256.hexdigest()


def _check_structure(source: Source, path: Path) -> None:
    data = read(path, Request())
    if (len(data), data.n_features) != (source.n_series, source.shape[1]) or (data.lengths != source.shape[0]).any():
        raise InputError(
            f"{source.url}: does not hold {source.n_series} arrays of shape {source.shape}; tell its keepers"
        )
