"""The option table, docs/cli.md and the man page name the same options. Argument: the source folder."""
import os
import re
import sys

from harness import check, finish, run

source = sys.argv[1]
VERBS = ("load", "plan", "inspect", "synth")
OPTION = re.compile(r"--([a-z][a-z0-9-]*)")

table = set()
for verb in VERBS:
    shown = run("help", verb).out
    table |= set(OPTION.findall(shown[shown.index("options:"):]))
check("the table has options", len(table) > 30, table)
page = set(OPTION.findall(open(os.path.join(source, "docs/cli.md")).read()))
man = open(os.path.join(source, "docs/lade.1")).read().replace("\\-", "-")
manual = set(OPTION.findall(man[man.index(".SH OPTIONS"):man.index(".SH EXIT")]))
other = {"help", "version", "some-name", "mpi"}
check("docs/cli.md lacks none", not table - page, table - page)
check("docs/cli.md has none that is not there", not page - table - other, page - table - other)
check("docs/lade.1 lacks none", not table - manual, table - manual)
check("docs/lade.1 has none that is not there", not manual - table - other, manual - table - other)

status = open(os.path.join(source, "include/lade.h")).read()
errors = open(os.path.join(source, "docs/errors.md")).read()
for name in re.findall(r"\b(LADE_E_[A-Z]+) = -", status):
    check("docs/errors.md explains " + name, name in errors)
finish()
