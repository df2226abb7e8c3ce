#!/usr/bin/env python3
"""Print the tests that CTest skipped, each with the last words of its output.

usage: skipped.py FILE      FILE was written by ctest --output-junit
"""
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
    cases = [c for c in xml.etree.ElementTree.parse(sys.argv[1]).iter("testcase")
             if c.find("skipped") is not None]
    if cases:
        print(f"\n{len(cases)} skipped:")
    for case in cases:
        print(f"    {case.get('name')}: {reason(case)}")


if __name__ == "__main__":
    main()
