"""What each command of the command line does; `cli.py` holds the arguments alone."""
