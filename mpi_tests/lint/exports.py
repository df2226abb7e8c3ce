#!/usr/bin/env python3
"""What a library of lade exports is what its public headers declare.

usage: exports.py NM LIBRARY HEADER...
"""
import re
import subprocess
import sys


def main():
    nm, library, *headers = sys.argv[1:]
    listing = subprocess.run([nm, "-D", "--defined-only", library], check=True,
                             capture_output=True, text=True).stdout
    exported = {line.split()[-1].split("@")[0] for line in listing.splitlines()
                if line.split()[-2] in "TDBRWVi"}
    declared = set()
    for header in headers:
        with open(header, encoding="utf-8") as f:
            text = re.sub(r"/\*.*?\*/", " ", f.read(), flags=re.S)
        declared |= set(re.findall(r"LADE_API[^;]*?\b(lade_\w+)\s*\(", text))
    for name in sorted(exported - declared):
        print(f"{name} is exported but not declared")
    for name in sorted(declared - exported):
        print(f"{name} is declared but not exported")
    print(f"exports: {len(declared)} functions declared, {len(exported)} exported")
    sys.exit(exported != declared or not declared)


if __name__ == "__main__":
    main()
