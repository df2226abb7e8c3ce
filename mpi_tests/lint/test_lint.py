#!/usr/bin/env python3
"""The checks themselves: what they must find, and what they must leave alone."""
import pathlib
import sys
import unittest

import csource
import layers
import names

CODE = '''
/* int commented(void) { exit(1); } */
#define MACRO(x) { x }
static const char *const s = "exit(1); {";
struct point {
    int x;
};
static int f(int a, void (*g)(int, int))
{
    if (a) {
        g(1, 2); // abort();
    }
    return '{' + a;
}

void lade_big_all(void)
{
    lade_other_all();
}
'''


class Source(unittest.TestCase):
    def test_functions(self):
        found = list(csource.functions(csource.blank(CODE)))
        self.assertEqual([f.name for f in found], ["f", "lade_big_all"])
        self.assertEqual([f.parameters for f in found], [2, 0])
        self.assertEqual([f.lines for f in found], [6, 3])
        self.assertEqual(found[0].line, 9)
        self.assertIn((11, "g"), list(found[0].calls()))

    def test_blank_keeps_lines(self):
        self.assertEqual(csource.blank(CODE).count("\n"), CODE.count("\n"))
        self.assertNotIn("exit", csource.blank(CODE))


class Layers(unittest.TestCase):
    CMAKE = "lade_room(base)\nlade_room(comm base)\nlade_room(plan comm)\nlade_room(topo plan)\n"

    def setUp(self):
        self.closure, self.faults = layers.declared(self.CMAKE)

    def faults_of(self, name, text):
        return list(layers.check_includes(pathlib.PurePosixPath(name), text, self.closure))

    def test_declared(self):
        self.assertEqual(self.closure["plan"], {"base", "comm", "plan"})
        self.assertEqual(len(self.faults), 1)  # topo on plan: upwards
        self.assertIn("topo (layer 4) builds on plan (layer 7)", self.faults[0])

    def test_includes(self):
        self.assertEqual(self.faults_of("src/plan/a.c", '#include "base/mem.h"\n'), [])
        self.assertEqual(self.faults_of("src/plan/a.c", '#include "plan/plan.h"\n'), [])
        self.assertEqual(self.faults_of("src/cli/a.c", '#include "plan/plan.h"\n'), [])
        self.assertEqual(len(self.faults_of("src/comm/a.c", '#include "plan/plan.h"\n')), 1)
        self.assertEqual(len(self.faults_of("src/keep/a.c", '#include "base/mem.h"\n')), 1)
        self.assertEqual(len(self.faults_of("include/lade.h", '#include "base/mem.h"\n')), 1)

    def test_foreign(self):
        for name, count in (("src/comm/comm_mpi.c", 0), ("src/cli/main.c", 0),
                            ("src/comm/comm.c", 1), ("src/cli/cmd_load.c", 1)):
            self.assertEqual(len(self.faults_of(name, "#include <mpi.h>\n")), count, name)

    def test_collective(self):
        text = CODE.replace("lade_big_all", "lade_big")
        self.assertEqual(list(layers.check_collective("a.c", CODE)), [])
        self.assertEqual(len(list(layers.check_collective("a.c", text))), 1)


class Names(unittest.TestCase):
    def test_calls(self):
        name = pathlib.PurePosixPath("src/plan/a.c")
        for text in ("exit(1);", "  sprintf(x, y);", "p = malloc(3);", "atoi(x)", "abort ();",
                     'fprintf(stdout, "");', "mmap(0, 1)", "MPI_Abort(c, 1);"):
            self.assertEqual(len(list(names.check_calls(name, text))), 1, text)
        for text in ("snprintf(x, 1, y);", "lade_exit(1)", "s->abort(x)", "hooks.malloc(3)",
                     "fprintf(out, x);", "int exit_code;", "strncpy(a, b, 1)"):
            self.assertEqual(list(names.check_calls(name, text)), [], text)

    def test_basenames(self):
        paths = [pathlib.PurePosixPath(p) for p in ("a/x.c", "b/x.h", "b/x.c")]
        self.assertEqual(len(list(names.check_basenames(paths))), 1)

    def test_functions(self):
        body = "x();\n" * 79
        self.assertEqual(len(list(names.check_functions("a.c", "int f(int a)\n{\n" + body + "}\n"))),
                         1)
        many = "int f(" + ", ".join(f"int a{i}" for i in range(8)) + ")\n{\n}\n"
        self.assertEqual(len(list(names.check_functions("a.c", many))), 1)


if __name__ == "__main__":
    sys.exit(unittest.main())
