"""Prints what a process and all its descendants took: tree.py cpu|memory PID. cpu is in seconds, with that of children that have ended;
memory is in bytes, where what several processes share counts once (PSS, root only)."""
import os
import sys


def parents():
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as f:
                    fields = f.read().rsplit(")", 1)[1].split()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended meanwhile
            yield int(name), int(fields[1]), [int(v) for v in fields[11:15]]


def memory(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup") as f:
            return sum(int(line.split()[1]) * 1024 for line in f if line.startswith("Pss:"))
    except (FileNotFoundError, ProcessLookupError):
        return 0


def main():
    what, root = sys.argv[1], int(sys.argv[2])
    processes = {pid: (parent, times) for pid, parent, times in parents()}
    tree = {root}
    while True:
        more = {pid for pid, (parent, _) in processes.items() if parent in tree} - tree
        if not more:
            break
        tree |= more
    if what == "memory":
        print(sum(memory(pid) for pid in tree))
    else:
        print(sum(sum(processes[pid][1]) for pid in tree if pid in processes) / os.sysconf("SC_CLK_TCK"))


main()
