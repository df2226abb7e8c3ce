#!/usr/bin/env python3
"""Print the tests that CTest skipped, each with the last words of its output.

usage: skipped.py FILE      FILE was written by ctest --output-junit
"""
import re
import sys
import xml.etree.ElementTree


def reason(case):
    lines = [x.strip() for x in (case.findtext("system-out") or "").split("\n")]
    said = [x for x in lines if "skip" in x.lower() or "cannot" in x.lower()]
    words = said or [x for x in lines if x][-1:]
    skipped = case.find("skipped")
    return "; ".join(words) or skipped.get("message") or "no reason given"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8", errors="replace") as f:
        text = re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f]", "?", f.read())
    root = xml.etree.ElementTree.fromstring(text.encode())
    cases = [c for c in root.iter("testcase") if c.find("skipped") is not None]
    if cases:
        print(f"\n{len(cases)} skipped:")
    for case in cases:
        print(f"    {case.get('name')}: {reason(case)}")


if __name__ == "__main__":
    main()
