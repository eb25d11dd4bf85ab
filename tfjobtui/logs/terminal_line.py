"""What a terminal would have shown: bytes of a log in, lines of text with colours out.

The model is that of a single line, which a newline ends: `\\r`, `\\b`, tabs, the erasing of (parts of) the
line (`CSI K`), moving within it (`CSI C`, `D`, `G`) and looks (`CSI m`). Everything else that begins with an
escape is swallowed and other control characters are dropped, so that nothing from a log reaches the
terminal raw. A newline ends any escape sequence: an unfinished one costs a line, not the rest of the log.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from tfjobtui.logs.lines import PLAIN, LogLine, Span, Style
from tfjobtui.logs.row import MAX_COLUMNS, TAB, Row, has_zero_width, is_narrow
from tfjobtui.logs.sgr import styled
from tfjobtui.model.text import printable

_MAX_STRING = 4096
"""The longest title, link or other string in an escape sequence; what follows is taken for text."""

_CSI = r"\[[0-?]{0,256}[ -/]{0,16}"
_STRING = rf"[\]PX^_][^\x00-\x1f\x7f]{{0,{_MAX_STRING}}}"
_TOKEN = re.compile(
    rf"""(?P<text>[^\x00-\x1f\x7f-\x9f]+)
    |\x1b(?:\[(?P<parameters>[0-?]{{0,256}})(?P<between>[ -/]{{0,16}})(?P<final>[@-~]?)
      |{_STRING}(?:\x07|\x1b\\)?
      |[ -/]{{0,16}}[0-~]?)
    |(?P<back>\x08+)|(?P<nul>\x00+)|(?P<control>[\x01-\x07\x09-\x1f\x7f-\x9f])""",
    re.VERBOSE,
)
_UNFINISHED = re.compile(rf"\x1b(?:{_CSI}|{_STRING}\x1b?|[ -/]{{0,16}})\Z")
_SGR = re.compile(r"\x1b\[([0-9;:]{0,64})m")
_RESET = "\x1b[0m"

ShownLine = LogLine | str
"""A line; plain text alone where nothing of it has a style, which costs a quarter of the memory."""


class TerminalLines:
    """Turns pieces of a log into lines; however it is cut into pieces, the lines are the same."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the unfinished line and the style."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._row = Row()
        self._nuls = 0
        self._held = ""

    def feed(self, data: bytes) -> list[ShownLine]:
        """Take the next bytes; give the lines that they end."""
        return self._take(self._decoder.decode(data))

    def current(self) -> ShownLine | None:
        """The unfinished line as it stands, `None` where there is nothing of it."""
        if self._row.is_fresh and not self._nuls:
            return None
        if not self._nuls:
            return self._row.line()
        shown = self._row.copy()
        shown.write(_nul_mark(self._nuls))
        return shown.line()

    def finish(self) -> ShownLine | None:
        """End the input here: give what there is of the last line, and begin anew."""
        self._take(self._decoder.decode(b"", final=True))
        line = self.current()
        self.reset()
        return line

    def _take(self, text: str) -> list[ShownLine]:
        lines = text.split("\n")
        last = lines.pop()
        shown: list[ShownLine] = []
        if lines:
            if self._held or self._nuls or not self._row.is_fresh:
                shown.append(self._ended(lines[0]))
                del lines[0]
            shown.extend(self._finished(lines))
        self._go_on(last)
        return shown

    def _finished(self, lines: list[str]) -> Iterator[ShownLine]:
        """Whole lines: most have nothing in them that a terminal would act on."""
        row = self._row
        for line in lines:
            if len(line) > MAX_COLUMNS // TAB:
                yield self._ended(line)
            elif row.style is PLAIN and line.isprintable() and (line.isascii() or not has_zero_width(line)):
                yield line
            else:
                shown = self._simple(line.rstrip("\r"))
                yield self._ended(line) if shown is None else shown

    def _simple(self, line: str) -> ShownLine | None:
        """A whole line of text, tabs and looks; `None` for any other."""
        row = self._row
        if row.style is PLAIN and line.isascii() and line.replace("\t", " ").isprintable():
            return line.expandtabs(TAB)
        coloured = _coloured(line, row.style)
        if coloured is None:
            return None
        shown, row.style = coloured
        return shown

    def _ended(self, text: str) -> ShownLine:
        """The line that this text completes; the row is fresh afterwards, in the same style."""
        self._apply(self._held + text)
        self._held = ""
        self._write_nuls()
        line = self._row.line()
        self._row.clear()
        return line

    def _go_on(self, text: str) -> None:
        """Text of a line that is not finished: an escape sequence that is cut at its end waits."""
        text = self._held + text
        cut = _UNFINISHED.search(text, max(0, len(text) - _MAX_STRING - 4))
        end = len(text) if cut is None else cut.start()
        self._held = text[end:]
        self._apply(text[:end])

    # ---- Acting on a piece of one line

    def _apply(self, text: str) -> None:
        segments = text.split("\r")
        if len(segments) <= 2:
            needed = [True] * len(segments)
        else:
            needed = _needed(segments)
        for index, segment in enumerate(segments):
            if index:
                self._write_nuls()
                self._row.column = 0
            if needed[index]:
                self._write(segment)
            elif "\x1b" in segment:
                self._restyle(segment)

    def _restyle(self, segment: str) -> None:
        """What a segment that is overwritten leaves behind: its last style."""
        end = segment.rfind(_RESET)
        if end >= 0:
            self._row.style = PLAIN
        for match in _SGR.finditer(segment, max(end, 0)):
            self._row.style = styled(self._row.style, match[1])

    def _write(self, text: str) -> None:
        row = self._row
        for match in _TOKEN.finditer(text):
            kind = match.lastgroup
            if kind == "nul":
                self._nuls += len(match[0])
                continue
            if self._nuls:
                self._write_nuls()
            if kind == "text":
                row.write(printable(match[0]))
            elif kind == "final":
                self._command(match)
            elif kind == "back":
                row.move(-len(match[0]))
            elif match[0] == "\t":
                row.tab()

    def _write_nuls(self) -> None:
        if self._nuls:
            self._row.write(_nul_mark(self._nuls))
            self._nuls = 0

    def _command(self, match: re.Match[str]) -> None:
        parameters, final = match["parameters"], match["final"]
        if match["between"]:
            return
        if final == "m":
            if parameters[:1] not in ("<", "=", ">", "?"):
                self._row.style = styled(self._row.style, parameters)
        elif final == "K":
            self._row.erase(_number(parameters, 0))
        elif final == "C":
            self._row.move(max(1, _number(parameters, 1)))
        elif final == "D":
            self._row.move(-max(1, _number(parameters, 1)))
        elif final in ("G", "`"):
            self._row.go_to(max(1, _number(parameters, 1)) - 1)


def _is_plain(text: str) -> bool:
    """Whether a terminal would show the text as it is, each character in a cell of its own or two."""
    return text.isprintable() and (text.isascii() or not has_zero_width(text))


def _coloured(text: str, style: Style) -> tuple[ShownLine, Style] | None:
    """A whole line that has nothing but text and looks, and the style after it; `None` for any other."""
    parts = _SGR.split(text)
    if not all(_is_plain(part) for part in parts[::2]):
        return None
    spans: list[Span] = []
    start = position = 0
    current = style
    for index in range(0, len(parts), 2):
        if index:
            style = styled(style, parts[index - 1])
        if not parts[index]:
            continue
        if style is not current and style != current:
            if current is not PLAIN and position > start:
                spans.append(Span(start, position, current))
            start, current = position, style
        position += len(parts[index])
    if current is not PLAIN and position > start:
        spans.append(Span(start, position, current))
    shown = "".join(parts[::2])
    return (LogLine(shown, tuple(spans)) if spans else shown), style


def _number(parameters: str, absent: int) -> int:
    """The first parameter. A larger one than any line is long counts as that; what is none, as -1."""
    text = parameters.partition(";")[0]
    if text == "":
        return absent
    if not (text.isascii() and text.isdigit()):
        return -1
    return min(int(text[:9]), MAX_COLUMNS) if len(text) < 10 else MAX_COLUMNS


def _nul_mark(count: int) -> str:
    return "␀" if count == 1 else f"␀×{count}"


def _needed(segments: list[str]) -> list[bool]:
    """Which of the texts between `\\r`s leave anything to be seen.

    All begin in column 0. One of known width (text and colours alone) is gone once a later one of known
    width is at least as wide; the last one says where the cursor ends, and the first may begin elsewhere.
    """
    needed = [True] * len(segments)
    covered = _width(segments[-1]) or 0
    for index in range(len(segments) - 2, 0, -1):
        width = _width(segments[index])
        if width is None:
            continue
        needed[index] = width > covered
        covered = max(covered, width)
    return needed


def _width(segment: str) -> int | None:
    """The columns that a segment covers, `None` where it does more than write text in colours."""
    text = segment.rstrip("\b")
    if "\x1b" in text:
        text = _SGR.sub("", text)
    return len(text) if text.isprintable() and is_narrow(text) and len(text) < MAX_COLUMNS else None
