# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sentences of documents and sources, and the rules that a program can check on them.

A document becomes a list of sentences and headings, each with its line. Tables, examples, literal
blocks and comments are left out; an inline literal counts as one word. Of a source file, the
comments and docstrings are read, of a patch the message and the comments that it adds, of
debian/control the descriptions, all without the limit on words.

    python3 tests/check/prose.py FILE...        what the rules find in these files
"""

import ast
import re
import sys
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_WORDS = 35

# From the lines of a file to as many lines of plain text.
Reader = Callable[[list[str]], list[str]]

# The word that stands for an inline literal.
LITERAL = "LITERAL"
# A line that begins with it is a paragraph of its own: a heading, a tag.
ALONE = "\v"


@dataclass(frozen=True)
class Sentence:
    """A sentence or a heading, and the line on which its paragraph begins."""

    line: int
    text: str


# German word order, as in "Has a group no requests?". In English, a question that begins with "has"
# has a participle.
QUESTION = re.compile(
    r"(?:^|[:;,] |\bhow (?:long|much|often|many \w+) |\bsince when )(?:has|have|had)\b(?P<rest>.*)",
    re.IGNORECASE,
)
PARTICIPLE = re.compile(
    r"\b(\w+ed|been|had|got|gone|come|become|done|made|set|put|cut|left|sent|lost|kept|held|met|read"
    r"|found|built|begun|run|won|paid|spent|brought|thought|taught|\w+(en|wn))\b",
    re.IGNORECASE,
)

# A pattern, and what to write instead. Questions are not searched for these.
RULES = [
    (
        r"^(Who|Whoever|Whom|Whose|What|Whatever|That which)\b",
        "a relative clause without a noun: name the subject",
    ),
    (
        r"\b(to|for|by|of|from|with|among|at|while|until|than|because) (who|whom|whoever)\b"
        r"|[;:(] (who|whom|whoever)\b",
        "a relative clause without a noun: name the group, user, reader or task",
    ),
    (
        r"\b(than|but|and|not|nor|as|of|for|to|by|with|from|in|on|against) what\b(?! to\b)"
        r"|[,;:(] what\b",
        "a relative clause without a noun: name the thing",
    ),
    (
        r"\b(say|says|said|saying|tells?|telling|told|hears?|knows?|knew|asks?|asked|asking"
        r"|wants?|wanted|forgets?)\b",
        "things do not speak or know: state, set, report, log, return, request, need, detect",
    ),
    (
        r"\b(he|him|his|nobody|somebody|anybody|everybody)\b",
        "a CPU or task is it; name the group, unit or task",
    ),
    (
        r"\bso (many|much|long)\b(?! as\b|.*\bthat\b)",
        "a number that stands elsewhere: this many, `count`, a time",
    ),
    (
        r"^\.\.\. ",
        "the rest of another comment: repeat its subject",
    ),
    (
        r"\b(dear|deaf|strangers?|handouts?)\b",
        "not a term of the field: see Documentation/glossary.rst",
    ),
]


def findings(path: Path) -> list[str]:
    """The findings of the rules in a file, each with its line."""
    limited = reader(path) in DOCUMENTS
    return [
        f"{one.line}: {reason}" for one in sentences(path) for reason in wrong(one.text, limited)
    ]


def wrong(text: str, limited: bool = True) -> list[str]:
    """The rules that a sentence breaks, each with a reason."""
    words = len(re.findall(r"[\w%/]\S*", text))
    reasons = []
    if limited and words > MAX_WORDS:
        reasons.append(f"{words} words, {MAX_WORDS} are allowed: {text[:60]}...")
    if text.endswith("?"):
        question = QUESTION.search(text)
        if question and not PARTICIPLE.search(question["rest"]):
            reasons.append("a question with has and no participle: use does ... have, or is")
    else:
        for pattern, advice in RULES:
            if match := re.search(pattern, text, re.IGNORECASE):
                reasons.append(f"{match[0]!r}: {advice}")
    return reasons


def abbreviations(path: Path) -> Iterator[tuple[int, str]]:
    """The words of three and more capitals outside literals and headings, each with its line."""
    for one in sentences(path):
        if not one.text.isupper():
            for word in re.findall(r"(?<![\w./$@-])([A-Z][A-Z\d]{2,})s?(?![\w/=]|\.\w)", one.text):
                if not word.startswith(LITERAL):
                    yield one.line, word


def sentences(path: Path) -> Iterator[Sentence]:
    """The sentences and headings of a file that has a reader."""
    form = reader(path)
    assert form, f"{path} has no reader"
    for line, paragraph in paragraphs(form(path.read_text(encoding="utf-8").splitlines())):
        for part in re.split(r"(?<=[\w)\]%\"'*][.!?])[\"')*]*\s+", paragraph):
            yield Sentence(line, part.strip(" *"))


def reader(path: Path) -> Reader | None:
    """The reader of a file, by its name or first line; None for a file without text for people."""
    if path.name in NAMES or path.suffix in SUFFIXES:
        return NAMES.get(path.name) or SUFFIXES[path.suffix]
    if path.suffix:
        return man if re.fullmatch(r"\.[1-8]", path.suffix) else None
    with open(path, encoding="utf-8", errors="replace") as file:
        first = file.readline(100)
    if first.startswith("What:"):
        return abi
    if "python" in first:
        return python_comments
    return hash_comments if first.startswith("#") else None


def paragraphs(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Join lines up to an empty one, an item of a list, or a change of indentation."""
    start, indent, text = 0, 0, ""
    for number, line in enumerate([*lines, ""], 1):
        item = re.match(r"\s*(?:[*-]|\d+\.)\s+", line)
        margin = len(item[0]) if item else len(line) - len(line.lstrip())
        if line.startswith(ALONE):
            margin = -number
        if item or margin != indent or not line.strip():
            if text:
                yield start, text
            start, indent, text = number, margin, ""
        text = f"{text} {line[max(margin, 0) :]}".strip()


def markdown(lines: list[str]) -> list[str]:
    """Markdown without comments, tables, pictures and examples; headings stand alone."""
    kept, comment, fenced = [], False, False
    for line in lines:
        comment = comment or line.startswith("<!--")
        fence = line.lstrip().startswith("```")
        kept.append("" if comment or fence or fenced or re.match(r"\||    |!\[|<", line) else line)
        fenced ^= fence
        comment = comment and "-->" not in line
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", "\n".join(kept))
    plain = re.sub(r"`[^`]+`", LITERAL, plain)
    return re.sub(r"^#+ (.*)$", rf"{ALONE}\1", plain, flags=re.M).split("\n")


def rst(lines: list[str]) -> list[str]:
    """reStructuredText without directives, literal blocks and tables."""
    kept: list[str] = []
    block: int | None = None  # indentation of the paragraph above a literal block
    table = False
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        indent = len(line) - len(line.lstrip())
        if block is not None and line.strip() and indent <= block:
            block = None
        border = re.fullmatch(r"\s*=+( +=+)+\s*", line)
        if border:
            table = not (table and not after.strip())
        left_out = block is not None or table or border or re.fullmatch(r"\s*([=~^-])\1+", line)
        directive = line.lstrip().startswith(".. ")
        if block is None and (directive or line.endswith("::")):
            block = indent
        kept.append("" if left_out or directive else re.sub(r":?:$", ":", line))
    plain = re.sub(r"``[^`]+``|`[^`]+`_?", LITERAL, "\n".join(kept))
    return plain.split("\n")


def abi(lines: list[str]) -> list[str]:
    """A file of Documentation/ABI: reStructuredText below lines of fields."""
    return rst(["" if re.match(r"\w+:", line) else line for line in lines])


def man(lines: list[str]) -> list[str]:
    """A manual page without examples, its macros for fonts resolved."""
    kept, example, tag = [], False, False
    for line in lines:
        macro, _, rest = line.partition(" ")
        if macro in (".nf", ".fi"):
            example = macro == ".nf"
        if example or macro == ".TH":
            text = ""
        elif macro in (".SH", ".SS"):
            text = ALONE + rest
        elif re.fullmatch(r"\.[BRI]{1,2}", macro):
            text = LITERAL + re.search(r"[.,;:?)]*$", rest.rstrip('"'))[0]
        elif line.startswith("."):
            text = ""
        else:
            text = line
        # The line after .TP is a tag.
        kept.append(ALONE + text if tag and text else text)
        tag = macro == ".TP"
    plain = [re.sub(r"\\f[BI].*?\\f[RP]", LITERAL, line) for line in kept]
    return [re.sub(r"\\\(..|\\", "", line.replace(r"\-", "-")) for line in plain]


def c_comments(lines: list[str]) -> list[str]:
    """The comments of a source in C; the text of each @name: stands alone."""
    kept, inside = [], False
    for line in lines:
        begins = not inside and re.search(r"/\*+", line)
        text = line[begins.end() :] if begins else line if inside else ""
        inside = (inside or bool(begins)) and "*/" not in text
        text = re.sub(r"^\s*\*(?!/)", "", text.partition("*/")[0])
        text = "" if "SPDX-" in text else text
        member = re.match(r"\s*(?:@\w+:|\w+(?:\(\))? - )\s*", text)
        kept.append(ALONE + text[member.end() :] if member else text)
    return [re.sub(r"[@&%]?\b\w*_\w*\b(\(\))?|@\w+", LITERAL, line) for line in kept]


def python_comments(lines: list[str]) -> list[str]:
    """The comments and docstrings of a source in Python."""
    kept = [""] * len(lines)
    source = "\n".join(lines)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if ast.get_docstring(node):
                for number in range(node.body[0].lineno - 1, node.body[0].end_lineno or 0):
                    kept[number] = lines[number].replace('"""', "   ")
    for token in tokenize.generate_tokens(iter(f"{line}\n" for line in lines).__next__):
        if token.type == tokenize.COMMENT and not re.match("#!|# SPDX-", token.string):
            kept[token.start[0] - 1] = token.string.lstrip("# ")
    return [re.sub(r"`[^`]*`", LITERAL, line) for line in kept]


def patch_text(lines: list[str]) -> list[str]:
    """The message of a patch, if it has one, without tables, and the comments that it adds."""
    end = lines.index("---") if "---" in lines else 0
    begin = lines.index("") if end else 0
    message = [
        line if begin < number < end and not re.search(r"^\s|\t|^[A-Z][\w-]*: ", line) else ""
        for number, line in enumerate(lines)
    ]
    added = [
        line[1:] if number > end and re.match(r"\+(?!\+\+ )", line) else ""
        for number, line in enumerate(lines)
    ]
    return [one or other for one, other in zip(message, c_comments(added), strict=True)]


def line_comments(lines: list[str], mark: str) -> list[str]:
    """Comments that begin with a mark. A comment behind code stands alone."""
    pattern = re.compile(rf"(?P<code>^|.*\s)(?:{mark})(?P<text>\s.*|)$")
    kept = []
    for line in lines:
        found = None if OF_TOOLS.search(line) else pattern.match(line)
        text = found["text"].strip() if found else ""
        kept.append(ALONE + text if text and found and found["code"].strip() else text)
    return [re.sub(r"`[^`]*`|\$?\b\w*_\w*\b", LITERAL, line) for line in kept]


def hash_comments(lines: list[str]) -> list[str]:
    """The comments of shell scripts, TOML, meson, units and other files of settings."""
    return line_comments(lines, "#+")


def dash_comments(lines: list[str]) -> list[str]:
    """The comments of a source in Lua."""
    return line_comments(lines, "--+")


def slash_comments(lines: list[str]) -> list[str]:
    """The comments of sources in Go, JavaScript and CSS."""
    blocks = [OF_JSDOC.sub("@member: ", line) for line in lines]
    ends = line_comments(lines, "//")
    return [one or other for one, other in zip(c_comments(blocks), ends, strict=True)]


def litmus_comments(lines: list[str]) -> list[str]:
    """The comments of a litmus test."""
    return c_comments([line.replace("(*", "/*").replace("*)", "*/") for line in lines])


def xml_comments(lines: list[str]) -> list[str]:
    """The comments of an XML or HTML file, without the names and types of arguments."""
    kept, inside = [], False
    for line in lines:
        begins = not inside and line.partition("<!--")[2]
        text = begins or (line if inside else "")
        inside = (inside or "<!--" in line) and "-->" not in line
        text = text.partition("-->")[0]
        kept.append(re.sub(r"^ +(\w+( [a-z(){}]+)?,? )+(?= )", _blank, text))
    return [re.sub(r"[@&%]?\b\w*_\w*\b(\(\))?", LITERAL, line) for line in kept]


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def catalog(lines: list[str]) -> list[str]:
    """The subjects and texts of a message catalog."""
    kept = []
    for line in lines:
        left_out = re.match(r"#|-- |Defined-By:|Documentation:", line)
        kept.append("" if left_out else re.sub(r"^Subject: ", ALONE, line))
    return [re.sub(r"@\w+@|\"[^\"]+\"", LITERAL, line) for line in kept]


def control(lines: list[str]) -> list[str]:
    """The comments and descriptions of debian/control."""
    kept, inside = [], False
    for line in lines:
        inside = line.startswith("Description:") or (inside and line.startswith(" "))
        text = re.sub(r"^Description: ", ALONE, line) if inside else ""
        kept.append("" if text.strip() == "." else text.lstrip(" "))
    return [one or other for one, other in zip(kept, hash_comments(lines), strict=True)]


# Lines that address tools, and settings that are commented out.
OF_TOOLS = re.compile(r"SPDX-|^#!|# (shellcheck|vim|fmt|noqa|type|pylint)\b|CONFIG_\w+ is not set")

# The name and the type of a parameter.
OF_JSDOC = re.compile(
    r"@(param|property|typedef|returns?|type)\b( *\{.*\})?( +\[?\w[\w.]*\]?(?= *(\s|$|\*/)))?"
)

DOCUMENTS = (markdown, rst, abi, man, catalog)
SUFFIXES: dict[str, Reader] = {
    ".md": markdown,
    ".rst": rst,
    ".c": c_comments,
    ".h": c_comments,
    ".py": python_comments,
    ".patch": patch_text,
    ".lua": dash_comments,
    ".litmus": litmus_comments,
    ".catalog": catalog,
    **dict.fromkeys((".go", ".mod", ".js", ".mjs", ".css"), slash_comments),
    **dict.fromkeys((".xml", ".html"), xml_comments),
    **dict.fromkeys(
        (
            *(".toml", ".config", ".conf", ".policy", ".sh", ".build", ".options", ".in", ".yml"),
            *(
                ".yaml",
                ".socket",
                ".service",
                ".path",
                ".packages",
                ".pip",
                ".zsh",
                ".fish",
                ".bash",
            ),
            *(".slice", ".rules", ".spec", ".nix"),
            *(".preinst", ".postinst", ".prerm", ".postrm", ".dkms", ".install"),
        ),
        hash_comments,
    ),
}
NAMES: dict[str, Reader] = {
    "control": control,
    **dict.fromkeys(("rules", "Kbuild", "Kconfig", "Makefile", "PKGBUILD"), hash_comments),
}


if __name__ == "__main__":
    problems = [f"{name}:{text}" for name in sys.argv[1:] for text in findings(Path(name))]
    print("\n".join(problems))
    sys.exit(1 if problems else 0)
