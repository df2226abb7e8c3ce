#!/usr/bin/env python3
"""Names and sizes: basenames are unique, files and functions have their limits,
calls that end the program or lose the length of a buffer are not made, memory
comes from the accounted allocator."""
import re
import sys

import csource

MOST_LINES = 800
MOST_FUNCTION = 80
MOST_PARAMETERS = 7

BANNED = re.compile(r"(?<![\w.>])(exit|_exit|abort|MPI_Abort|printf|vprintf|puts|putchar|gets|"
                    r"sprintf|vsprintf|strcpy|strcat|atoi|atol|atoll|atof|setenv|putenv)\s*\(")
STDOUT = re.compile(r"\b(?:fprintf|fputs|fwrite|fputc|putc|write)\s*\([^;]*\b"
                    r"(?:stdout|STDOUT_FILENO)\b")
MEMORY = re.compile(r"(?<![\w.>])(malloc|calloc|realloc|aligned_alloc|posix_memalign|memalign|"
                    r"valloc|alloca|strdup|strndup|asprintf|vasprintf|mmap|mmap64)\s*\(")
MEMORY_FILES = {"src/base/mem.c", "src/base/shm.c"}
MACHINE = re.compile(r"(?<![\w/])/(work|root|home)/")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK|NEEDSWORK)\b")


def check_basenames(names):
    seen = {}
    for name in names:
        if name.name in seen:
            yield f"{name}: {seen[name.name]} has the same file name"
        seen.setdefault(name.name, name)


def check_text(name):
    if "lint" in name.parts:
        return
    for number, line in enumerate(csource.read(name).split("\n"), 1):
        word = UNFINISHED.search(line)
        if word:
            yield f"{name}:{number}: holds the word {word.group(1)}"
        if MACHINE.search(line):
            yield f"{name}:{number}: names a folder of one machine"


def check_calls(name, code):
    for number, line in enumerate(code.split("\n"), 1):
        for match in BANNED.finditer(line):
            yield f"{name}:{number}: {match.group(1)} is not used here"
        if STDOUT.search(line):
            yield f"{name}:{number}: stdout belongs to the program"
        for match in MEMORY.finditer(line):
            if str(name) not in MEMORY_FILES:
                yield (f"{name}:{number}: {match.group(1)}: memory comes from base/mem.h or "
                       f"base/shm.h")


def check_functions(name, code):
    for function in csource.functions(code):
        if function.lines > MOST_FUNCTION:
            yield (f"{name}:{function.line}: {function.name} has {function.lines} lines, "
                   f"{MOST_FUNCTION} are the limit")
        if function.parameters > MOST_PARAMETERS:
            yield (f"{name}:{function.line}: {function.name} has {function.parameters} "
                   f"parameters, {MOST_PARAMETERS} are the limit")


def check_file(name):
    text = csource.read(name)
    lines = text.count("\n")
    if lines > MOST_LINES:
        yield f"{name}: {lines} lines, {MOST_LINES} are the limit"
    if name.suffix not in (".c", ".h", ".cu"):
        return
    code = csource.blank(text)
    yield from check_functions(name, code)
    library = name.parts[0] in ("src", "kernels") and name.parts[1] != "cli"
    if library:
        yield from check_calls(name, code)


def main():
    names = csource.files(".c", ".h", ".cu", ".cuh", ".py", ".sh")
    faults = list(check_basenames(names))
    for name in names:
        faults += check_file(name)
    for name in names + csource.files(".md", ".cmake", ".txt", ".1"):
        faults += check_text(name)
    if not names:
        faults.append("no files found")
    sys.exit(csource.report(faults, "names"))


if __name__ == "__main__":
    main()
