"""`python -m neuralmjp` does what the command does."""

from .cli import main

main()
