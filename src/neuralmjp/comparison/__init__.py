"""Methods side by side on the same data.

methods    what can be compared, each as a function of the same question
answer     what every one of them says, in plain numbers
matching   states of different methods named alike
running    each fit in a process of its own
compared   all answers together, as tables
"""

from .answer import Answer
from .compared import Comparison
from .methods import METHODS, Question
from .running import compare

__all__ = ["METHODS", "Answer", "Comparison", "Question", "compare"]
