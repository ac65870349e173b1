"""What goes wrong for a reason the user can mend."""

INTERRUPTED = 130  # exit status after Ctrl-C


class InputError(ValueError):
    """Data, a file or an argument that cannot be used; the message says what, where and what to do, in one line."""


class DamagedFile(InputError):
    """A file whose bytes are not those that were written."""
