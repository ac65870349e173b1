"""Many pieces of work that need nothing of each other: here, on all cores of this machine, or on many machines.

run_each     all questions, answered
each_answer  the same, as answers come
opened       a place to work, for several rounds
Kept         answers in a folder, so that nothing is worked out twice
"""

from .kept import Kept
from .places import Place, opened
from .running import Progress, each_answer, run_each

__all__ = ["Kept", "Place", "Progress", "each_answer", "opened", "run_each"]
