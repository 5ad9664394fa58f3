"""Lines of the user's source, for messages: where something was called, where an error came from."""

from __future__ import annotations

import linecache
import sysconfig
from contextlib import suppress
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import NamedTuple

import plum

from morula.core import debug
from morula.core.errors import DifferentiationError

HERE = str(Path(__file__).parents[1])
LIBRARIES = (
    sysconfig.get_path("stdlib"),
    sysconfig.get_path("purelib"),
    sysconfig.get_path("platlib"),
    str(Path(plum.__file__).parents[1]),
)


class Place(NamedTuple):
    """A line of the user's."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        source = linecache.getline(self.file, self.line).strip()
        return f"{self.file}:{self.line}, in {self.function}" + (f":   {source}" if source else "")


NOWHERE = Place("?", 0, "?")


def place_of(frame: FrameType | None) -> Place:
    """The innermost line outside of Morula, but for those of libraries if there is another."""
    lines = []
    while frame is not None:
        lines.append((frame, frame.f_lineno))
        frame = frame.f_back
    return innermost(lines)


def place_in(traceback: TracebackType | None) -> Place:
    """The same in what an exception has passed."""
    lines = []
    while traceback is not None:
        lines.append((traceback.tb_frame, traceback.tb_lineno))
        traceback = traceback.tb_next
    return innermost(lines[::-1])


def innermost(lines: list[tuple[FrameType, int]]) -> Place:
    """The first of these lines that is the user's."""
    first = None
    for frame, line in lines:
        code = frame.f_code
        if not code.co_filename.startswith(HERE):
            found = Place(code.co_filename, line, code.co_name)
            if not is_of_a_library(code.co_filename):
                return found
            first = first or found
    return first or NOWHERE


def is_of_a_library(file: str) -> bool:
    """Is it a file of Python's or of an installed package?"""
    return file.startswith(LIBRARIES)


def tell_place(error: BaseException, frame: FrameType | None = None) -> None:
    """Let an error of Morula's show the user's line that it came from, behind what happened.

    `frame` is where it is made, if it is not raised now; its traceback then shows what called that.
    An exception that is not Morula's stays as it is, and gets a note.
    """
    if not isinstance(error, DifferentiationError):
        add_note(error)
        return
    if error.tells_place or len(error.args) != 1:
        return
    if frame is not None:
        error.__traceback__ = traceback_to(frame, error.__traceback__)
    show(place_in(error.__traceback__), error)


def show(place: Place, error: DifferentiationError) -> None:
    """Put a place behind what an error says that happened, if it tells none yet."""
    if place is not NOWHERE and not error.tells_place and len(error.args) == 1:
        error.tells_place = True
        what, *more = str(error).split("\n")
        if not any(line.startswith(f"  {place.file}:{place.line},") for line in more):
            error.args = ("\n".join([what, f"  {place}", *more]),)


def add_note(error: BaseException) -> None:
    """Let an exception say, below its own text, which line was differentiated when it was raised.

    Its traceback ends there, as that of the plain call does.
    """
    place = place_in(error.__traceback__)
    if place is NOWHERE:
        return
    if not debug.ON:
        end_at_user(error.__traceback__)
    notes = [f"while Morula differentiated {place}"]
    if isinstance(error, RecursionError):
        notes.append(DEEPER)
    for note in notes:
        if note not in getattr(error, "__notes__", ()):
            with suppress(Exception):  # of a class that lets nobody set attributes
                error.add_note(note)


DEEPER = (
    "A call that is differentiated needs several frames of the interpreter. Ways out: raise the "
    "limit with sys.setrecursionlimit(...), or write the recursion as a loop"
)


def end_at_user(traceback: TracebackType | None) -> None:
    """Leave out what Morula's own functions did behind the last line of somebody else's."""
    last = None
    while traceback is not None:
        if not is_own(traceback.tb_frame):
            last = traceback
        traceback = traceback.tb_next
    if last is not None:
        last.tb_next = None


def is_own(frame: FrameType) -> bool:
    """Does it run a function of Morula's, perhaps one that was made of a text?"""
    name = frame.f_globals.get("__name__")
    made = frame.f_code.co_filename == "<string>" and str(name).startswith("morula.")
    return made or frame.f_code.co_filename.startswith(HERE)


ENTRIES: list[CodeType] = []  # of functions that begin a reverse pass


def traceback_to(frame: FrameType | None, behind: TracebackType | None) -> TracebackType | None:
    """The traceback of an error that came to a frame, from the beginning of the pass on."""
    while frame is not None and not any(frame.f_code is code for code in ENTRIES):
        behind = TracebackType(behind, frame, frame.f_lasti, frame.f_lineno)
        frame = frame.f_back
    return behind
