"""C files as far as the checks of this folder need them: text without comments
and strings, includes, and functions by counting braces."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIP = {"build", ".git", "__pycache__", "corpus"}

_NOISE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'',
                    re.S)
_HEAD = re.compile(r"([A-Za-z_]\w*)\s*\(")


def files(*suffixes, under="."):
    """All files of the tree with these suffixes, sorted, as paths from ROOT."""
    found = []
    # a build folder may have any name
    skip = SKIP | {cache.parent.name for cache in ROOT.glob("*/CMakeCache.txt")}
    for path in (ROOT / under).rglob("*"):
        name = path.relative_to(ROOT)
        if path.suffix in suffixes and path.is_file() and not skip & set(name.parts):
            found.append(name)
    return sorted(found)


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def blank(text):
    """The text with comments and the inside of strings made blank; lines stay."""
    def wipe(match):
        kept = re.sub(r"[^\n]", " ", match.group())
        return '""' + kept[2:] if match.group()[0] == '"' else kept
    return _NOISE.sub(wipe, text)


def includes(text):
    """(line, name, quoted) of each #include."""
    for number, line in enumerate(text.split("\n"), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match:
            yield number, match.group(2), match.group(1) == '"'


class Function:
    def __init__(self, name, parameters, line, body):
        self.name = name
        self.parameters = parameters
        self.line = line  # of the opening brace
        self.body = body
        self.lines = body.count("\n") + 1

    def calls(self):
        """(line, name) of what looks like a call in the body."""
        for match in _HEAD.finditer(self.body):
            yield self.line + self.body.count("\n", 0, match.start()), match.group(1)


def _count_parameters(text):
    inside = text.strip()
    if inside in ("", "void"):
        return 0
    depth = commas = 0
    for c in inside:
        depth += (c in "([") - (c in ")]")
        commas += c == "," and depth == 0
    return commas + 1


def _head_of(text, brace):
    """Name and parameters of the function whose body opens at `brace`, or None."""
    end = brace
    while end > 0 and text[end - 1].isspace():
        end -= 1
    if end == 0 or text[end - 1] != ")":
        return None
    depth, at = 0, end - 1
    while at >= 0:
        depth += (text[at] == ")") - (text[at] == "(")
        if depth == 0:
            break
        at -= 1
    name = re.search(r"([A-Za-z_]\w*)\s*$", text[:at])
    if not name or name.group(1) in ("if", "for", "while", "switch"):
        return None
    return name.group(1), _count_parameters(text[at + 1:end - 1])


def functions(text):
    """Function definitions of a file whose text went through blank()."""
    code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*",
                  lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.M)
    code = re.sub(r'extern\s*""\s*\{', lambda m: " " * len(m.group()), code)
    depth, start, head = 0, 0, None
    for match in re.finditer(r"[{}]", code):
        if match.group() == "{":
            if depth == 0:
                start, head = match.start(), _head_of(code, match.start())
            depth += 1
            continue
        depth = max(depth - 1, 0)
        if depth == 0 and head:
            line = code.count("\n", 0, start) + 1
            yield Function(*head, line, code[start:match.end()])
            head = None


def report(faults, what):
    """Prints the faults; the exit code."""
    for fault in faults:
        print(fault)
    print(f"{what}: {len(faults)} faults" if faults else f"{what}: ok")
    return 1 if faults else 0
