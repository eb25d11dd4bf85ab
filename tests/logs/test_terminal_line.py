"""The terminal model of a line, beside a real terminal emulator."""

import re
import unicodedata
from collections.abc import Iterable
from typing import Any

import pyte
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tfjobtui.logs.lines import LogLine, Span, Style
from tfjobtui.logs.row import CUT, MAX_COLUMNS
from tfjobtui.logs.terminal_line import ShownLine, TerminalLines


def lines_of(data: bytes, pieces: Iterable[int] = ()) -> list[LogLine]:
    """All lines, the unfinished one too, with the data cut at these places."""
    terminal = TerminalLines()
    shown: list[ShownLine] = []
    start = 0
    for end in [*sorted(pieces), len(data)]:
        shown += terminal.feed(data[start:end])
        terminal.current()  # looking changes nothing
        start = end
    last = terminal.finish()
    if last is not None:
        shown.append(last)
    return [LogLine(line) if isinstance(line, str) else line for line in shown]


def texts(data: bytes) -> list[str]:
    return [line.text for line in lines_of(data)]


# ---- Recordings, made as the programs write


def keras_bar(steps: int, epochs: int) -> bytes:
    """Keras 3 with `verbose=1`: backspaces over the last state, `\\r`, colours, no newline until the end."""
    out: list[str] = []
    for epoch in range(epochs):
        out.append(f"\x1b[1mEpoch {epoch + 1}/{epochs}\x1b[0m\n")
        before = 0
        for step in range(1, steps + 1):
            done = 20 * step // steps
            head = f"\x1b[1m{step:>{len(str(steps))}}/{steps}\x1b[0m "
            bar = f"\x1b[32m{'━' * done}\x1b[0m\x1b[37m{'━' * (20 - done)}\x1b[0m"
            info = f" \x1b[1m{(steps - step) // 3}s\x1b[0m {step}ms/step - loss: {step / 7:.{1 + step % 4}f}"
            width = len(re.sub(r"\x1b\[\d+m", "", head + bar + info))
            out.append("\b" * before + "\r" + head + bar + info + " " * max(0, before - width))
            before = width
        out.append("\n")
    return "".join(out).encode()


def tqdm_bar(steps: int) -> bytes:
    blocks = " ▏▎▍▌▋▊▉█"
    states = (f"\r{step / steps:4.0%}|{blocks[step % 9]:<10}| {step}/{steps}" for step in range(steps + 1))
    return ("".join(states) + "\n").encode()


RECORDINGS = {
    "keras": keras_bar(45, 3),
    "tqdm": tqdm_bar(50),
    "dos": b"one\r\ntwo\r\n\r\nthree",
    "pip": b"\r\x1b[K     |####    | 10 kB 3.1 MB/s\r\x1b[K     |######## | 20 kB 3.1 MB/s\nDone\n",
    "columns": b"\x1b[5Cfive\x1b[2Dxx\x1b[1Gone\x1b[20Gtwenty\n\x1b[2K\x1b[1Gagain\n",
    "erase": b"abcdef\x1b[3D\x1b[K|\nabcdef\x1b[3D\x1b[1K|\nabcdef\x1b[2K|\nabcdef\x1b[1K\r>\n",
    "tabs": b"a\tb\tc\n\tx\b\b\ty\nlonger than eight\tend\n1\t\r2\n",
    "colours": b"\x1b[31mred\x1b[0m \x1b[1;38;5;208mbold\x1b[22m orange\x1b[39;48;2;1;2;3m true\x1b[m\n\x1b[7mrev",
    "over lines": b"\x1b[32mgreen\nstill green\x1b[0m\nplain\n",
    "wide": "学習率 = ０．１\n進捗\b\bab\n".encode(),
    "combining": "e\u0301te\u0301 a\u0308b\n".encode(),
    "titles": b"\x1b]0;a title\x07seen\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n\x1b(B\x1b7x\x1b8\x1b=\n",
    "swallowed": b"\x1b[?25lhidden\x1b[?25h\x1b[2;3r\x1b[6n\n",
}


def emulated(data: bytes, columns: int = 200) -> tuple[list[Any], list[str]]:
    rows = data.count(b"\n") + 2
    screen = pyte.Screen(columns, rows)
    screen.set_mode(pyte.modes.LNM)  # a terminal's line discipline adds the carriage return
    pyte.ByteStream(screen).feed(data)
    return [screen.buffer[row] for row in range(rows)], screen.display


@pytest.mark.parametrize("name", RECORDINGS)
def test_text_is_that_of_a_terminal(name: str) -> None:
    _, display = emulated(RECORDINGS[name])
    expected = [line.rstrip() for line in display]
    # The emulator puts combining characters together with their base.
    shown = [unicodedata.normalize("NFC", line.text.rstrip()) for line in lines_of(RECORDINGS[name])]
    assert shown == expected[: len(shown)]
    assert not any(expected[len(shown) :])


_NAMES = ["black", "red", "green", "brown", "blue", "magenta", "cyan", "white"]


def _hex(colour: object) -> str:
    if colour is None:
        return "default"
    if isinstance(colour, int):
        return _NAMES[colour] if colour < 8 else pyte.graphics.FG_BG_256[colour]
    assert isinstance(colour, tuple)
    return "{:02x}{:02x}{:02x}".format(*colour)


@pytest.mark.parametrize("name", ["keras", "colours", "over lines", "tqdm", "columns"])
def test_looks_are_those_of_a_terminal(name: str) -> None:
    buffer, _ = emulated(RECORDINGS[name])
    for cells, line in zip(buffer, lines_of(RECORDINGS[name]), strict=False):
        styles = [Style()] * len(line.text)
        for span in line.spans:
            styles[span.start : span.end] = [span.style] * (span.end - span.start)
        for column, style in enumerate(styles):
            cell = cells[column]
            assert (cell.fg, cell.bg) == (_hex(style.fg), _hex(style.bg))
            assert (cell.bold, cell.reverse) == (style.bold, style.reverse)


def test_a_keras_bar_is_one_line_in_its_latest_state() -> None:
    lines = lines_of(keras_bar(45, 3))
    assert len(lines) == 6
    assert lines[0] == LogLine("Epoch 1/3", (Span(0, 9, Style(bold=True)),))
    assert lines[1].text.startswith("45/45 ━━━━━━━━━━━━━━━━━━━━ 0s 45ms/step - loss: 6.4")
    assert lines[1].spans[1] == Span(6, 26, Style(fg=2))


def test_a_bar_that_is_not_finished() -> None:
    terminal = TerminalLines()
    data = keras_bar(45, 1)
    terminal.feed(data[: data.index(b"\r20") if b"\r20" in data else data.index(b"20/45")])
    current = terminal.current()
    assert isinstance(current, LogLine)
    assert current.text.startswith("19/45 ━━━━━━━━━━━━━━━━━━━━ 8s")
    assert current.spans[1].style == Style(fg=2)


# ---- Byte by byte


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"two ranks \xe2\x94|\x81 wrote\n", ["two ranks \ufffd|\ufffd wrote"]),
        ("━━".encode()[:4] + b"\n50%\n", ["━\ufffd", "50%"]),
        (b"latin-1: gr\xfc\xdfe\n", ["latin-1: gr\ufffd\ufffde"]),
        (b"[/] [red]x[/red] \\[\n", ["[/] [red]x[/red] \\["]),
        (b"a" + b"\0" * 1000 + b"b\n", ["a␀×1000b"]),
        (b"\0\n\0\0", ["␀", "␀×2"]),
        (b"bell\x07 \x0b\x0c\x0e\x7f\xc2\x9b31m!\n", ["bell 31m!"]),
        (b"\x1b]0;never ended\nnext\n", ["", "next"]),
        (b"\x1b[31\nnext\n", ["", "next"]),
        (b"\x1b\x1b[31mred\x1b[0m\n", ["red"]),
        (b"\x1bPq#0;2;0;0;0#0~~@@\x1b\\after\n", ["after"]),
        ("rtl \u202e gone\u200b\ufeff\n".encode(), ["rtl \ufffd gone\u200b\ufffd"]),
        (b"\x1b[99999999999999999999Cx\n", [" " * 256 + "x"]),
        (b"ab\x1b[99999D>\n", [">b"]),
        (b"ab\x1b[0D>\n", ["a>"]),
        (b"", []),
        (b"\n\n", ["", ""]),
        (b"\r\r\n", [""]),
        (b"no newline", ["no newline"]),
    ],
)
def test_odd_bytes(data: bytes, expected: list[str]) -> None:
    assert texts(data) == expected


def test_a_wide_character_that_is_half_overwritten() -> None:
    assert texts("進捗\rx\n".encode()) == ["x 捗"]
    assert texts("進捗\x1b[2Gx\n".encode()) == [" x捗"]
    assert texts("進捗\x1b[2G\x1b[K|\n".encode()) == [" |"]


def test_a_line_without_end_is_cut_and_marked() -> None:
    for data in (b"x" * 10**6, b"x" * 10**6 + b"\n", b"ab\t" * 10**5):
        (line,) = lines_of(data, range(0, 10**6, 99_999))
        assert len(line.text) <= MAX_COLUMNS + len(CUT)
        assert line.text.endswith(CUT)
    assert texts(b"x" * 10**6 + b"\rnew\x1b[K\n") == ["new"]


def test_colours_by_any_notation() -> None:
    for sequence, style in {
        "38;5;9": Style(fg=9),
        "38:5:9": Style(fg=9),
        "38;2;1;2;3": Style(fg=(1, 2, 3)),
        "38:2::1:2:3": Style(fg=(1, 2, 3)),
        "48;2;1;2;3;1": Style(bg=(1, 2, 3), bold=True),
        "91;102": Style(fg=9, bg=10),
        "1;2;3;4;7": Style(bold=True, dim=True, italic=True, underline=True, reverse=True),
        "4:3": Style(underline=True),
    }.items():
        assert lines_of(f"\x1b[{sequence}mx".encode()) == [LogLine("x", (Span(0, 1, style),))]
    for sequence in ("38;5", "38;5;256", "38;2;1;2", "999", "?1", ">1", "31;0", "31;39", "4;4:0", "x", ";;;"):
        assert lines_of(f"\x1b[{sequence}mx".encode())[0].spans == ()


# ---- Properties

_PIECES = st.sampled_from(
    [
        b"\r",
        b"\n",
        b"\b",
        b"\b\b\b",
        b"\t",
        b"\0",
        b"\x1b",
        b"\x1b[",
        b"\x1b[K",
        b"\x1b[1K",
        b"\x1b[2K",
        b"\x1b[31m",
        b"\x1b[0m",
        b"\x1b[m",
        b"\x1b[3C",
        b"\x1b[2D",
        b"\x1b[7G",
        b"\x1b]0;t",
        b"\x07",
        b"\x1b\\",
        "━━━━".encode(),
        "進".encode(),
        "e\u0301".encode(),
        "\u0301".encode(),
        "\u00a0\u202e".encode(),
        b"\xe2\x94",
        b"\xc2\x9b",
        b"abc",
        b"0123456789",
        b" ",
        b"[32m",
        b"\x7f",
    ]
)
_LOGS = st.one_of(st.binary(max_size=60), st.lists(_PIECES, max_size=25).map(b"".join))


@settings(deadline=None)
@given(_LOGS, st.lists(st.integers(0, 200), max_size=6))
@example(b"abcdef\r\x1b[31mx\ry\r\x1b[0mz", [])
@example(b"abc\0\0\0", [4, 5])
def test_any_cut_gives_the_same_lines(data: bytes, cuts: list[int]) -> None:
    whole = lines_of(data)
    assert lines_of(data, [cut for cut in cuts if cut < len(data)]) == whole
    assert lines_of(data, range(1, len(data))) == whole


@settings(deadline=None)
@given(_LOGS)
def test_nothing_raw_gets_through(data: bytes) -> None:
    for line in lines_of(data):
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", line.text)
        end = 0
        for span in line.spans:
            assert end <= span.start < span.end <= len(line.text)
            assert span.style != Style()
            end = span.end


_LIKE_A_TERMINAL = st.lists(
    st.sampled_from(
        [
            "\r", "\n", "\b", "\b\b", "\t", "\x1b[K", "\x1b[1K", "\x1b[2K", "\x1b[31m", "\x1b[0m", "\x1b[3C",
            "\x1b[2D", "\x1b[7G", "━━━━", "abc", "0123456789", " ", "\r\r", "\x1b[1mx\x1b[0m",
        ]
    ),
    max_size=30,
)  # fmt: skip


@settings(deadline=None)
@given(_LIKE_A_TERMINAL)
def test_any_mix_of_movements_is_as_in_a_terminal(parts: list[str]) -> None:
    data = "".join(parts).encode()
    buffer, display = emulated(data, 400)
    lines = lines_of(data)
    assert [line.text.rstrip() for line in lines] == [text.rstrip() for text in display][: len(lines)]
    for cells, line in zip(buffer, lines, strict=False):
        styles = [Style()] * len(line.text)
        for span in line.spans:
            styles[span.start : span.end] = [span.style] * (span.end - span.start)
        for column, style in enumerate(styles):
            if line.text[column] != " ":
                assert (cells[column].fg, cells[column].bold) == (_hex(style.fg), style.bold)
