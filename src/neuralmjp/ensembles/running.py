"""All questions of an ensemble: those that were answered before, then the others as they end."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any, cast

from ..errors import InputError
from .kept import Kept
from .places import Answer, End, Function, Place, Question, opened

Progress = Callable[[str, float], None]


def run_each(
    function: Function, questions: Mapping[str, Question], shared: Any = None, **how: Any
) -> dict[str, Answer]:
    """All answers by name, in the order of the questions; see `each_answer`.

    >>> from neuralmjp.ensembles import run_each
    >>> run_each(lambda base, asked: {"power": base ** asked["n"]}, {"square": {"n": 2}, "cube": {"n": 3}}, 2)
    {'square': {'power': 4}, 'cube': {'power': 8}}
    """
    found = dict(each_answer(function, questions, shared, **how))
    return {name: found[name] for name in questions}


def each_answer(
    function: Function,
    questions: Mapping[str, Question],
    shared: Any = None,
    *,
    cluster: str | Place | None = None,
    kept: Kept | None = None,
    go_on: bool = False,
    progress: Progress = lambda *_: None,
) -> Iterator[tuple[str, Answer]]:
    """Names and answers, as they come.

    Args:
        function: of what is shared and of one question; on a cluster it must be one that its workers can import.
        questions: by name; dictionaries of numbers, names and arrays, as answers are.
        shared: what all of them are about, such as data; goes to each worker once.
        cluster: None for this process, "local", or the address of a scheduler; or a place that is `opened`.
        kept: where answers are kept as soon as they are there, and looked for before.
        go_on: what goes wrong is an answer, {"failed": words}, and not the end of all.

    Raises:
        InputError: one line that names the question, if what was asked cannot be answered.
    """
    waiting, done = {}, 0
    for name, question in questions.items():
        old = None if kept is None else kept.find(name, question)
        if old is None:
            waiting[name] = question
        else:
            done += 1
            yield name, old

    def tell(words: str) -> None:
        progress(words, done / len(questions))

    if waiting:
        with opened(cluster) as place, closing(cast(Any, place.ends(function, waiting, shared, tell))) as ends:
            for name, end in ends:
                answer = _answer(name, end, go_on)
                if kept is not None:
                    kept.keep(name, waiting[name], answer)
                done += 1
                yield name, answer
    progress("done", 1.0)


def _answer(name: str, end: End, go_on: bool) -> Answer:
    """What was answered; or the error, with the name of the question."""
    if end.answer is not None:
        return end.answer
    assert end.error is not None
    if go_on:
        kind = "" if isinstance(end.error, InputError) else f"{type(end.error).__name__}: "
        return {"failed": " ".join(f"{kind}{end.error}".split())}
    if isinstance(end.error, InputError):
        raise InputError(f"{name}: {end.error}") from None
    end.error.add_note(f"while at: {name}")
    raise end.error
