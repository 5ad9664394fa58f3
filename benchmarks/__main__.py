"""Times Morula against adjoints written by hand and against other tools.

    python -m benchmarks                    everything; updates benchmarks/ratios.json
    python -m benchmarks --only mlp         the cases whose module or name match
    python -m benchmarks --quick            fewer rounds, no case of seconds per call
    python -m benchmarks --check            gradients only: by hand against finite differences,
                                            all others against by hand

Times are ratios to the hand-written adjoint; "cold" is the first call in milliseconds,
transformation included; "memory" the ratio of peaks; "!" marks what is out of the contract's
bounds. The exit status is 1 when a gradient of Morula's, or in a check one by hand, is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import pkgutil
import re
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

# One thread for everybody. (JAX hands some calls to a thread of its own, whose time counts as well;
# a pool of one, NPROC=1, would make its small calls several times slower.)
# glibc's allocator gives large blocks back to the system or keeps them, as the history of the
# process has it, and array timings follow fourfold: let it always keep them (32 MiB is the largest
# threshold that it accepts).
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
    "JAX_ENABLE_X64": "1",
    "MALLOC_MMAP_THRESHOLD_": str(32 * 1024**2),
    "MALLOC_TRIM_THRESHOLD_": str(1024**3),
}
TOLERANCE = 1e-6  # of the hand-written adjoints against finite differences


def main() -> int:
    """Run the cases that are asked for; the exit status."""
    options = parse()
    from benchmarks import harness, workloads

    modules = [f"{workloads.__name__}.{m.name}" for m in pkgutil.iter_modules(workloads.__path__)]
    cases = [
        (case, module)
        for module in modules
        for case in import_module(module).CASES
        if re.search(options.only, f"{module.rpartition('.')[2]}: {case.name}", re.IGNORECASE)
        and not (case.large and options.quick)
    ]
    settings = harness.QUICK if options.quick else harness.Settings()
    settings = replace(settings, peers=not options.no_peers)
    width = max((len(case.name) for case, _ in cases), default=4)
    if not options.check:
        print(harness.line(harness.HEADER, width), flush=True)
    entries: dict[str, object] = {}
    remarks: list[str] = []
    faults: list[str] = []
    for case, module in cases:
        if options.check:
            error = harness.check_by_hand(case)
            print(f"{case.name.ljust(width)}  by hand {error:.1e}", flush=True)
            if not error <= TOLERANCE:
                faults.append(f"{case.name}: WRONG by hand, relative error {error:.1e}")
        result = harness.run(case, module, settings, timed=not options.check)
        faults += [f"{case.name}: {fault}" for fault in result.wrong]
        if not options.check:
            print(harness.line(harness.row(result), width), flush=True)
            entries[case.name] = harness.record(result)
        remarks += [f"{case.name.ljust(width)}  {note}" for note in harness.notes(result)]
    if remarks:
        print("", *remarks, sep="\n")
    if options.json and entries:
        write(options.json, entries)
    for fault in faults:
        print(f"\n*** {fault} ***", file=sys.stderr)
    return 1 if faults else 0


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", metavar="PATTERN", default="", help="regular expression")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--no-peers", action="store_true", help="Morula and by hand only")
    parser.add_argument("--check", action="store_true", help="compare gradients, time nothing")
    parser.add_argument(
        "--json",
        metavar="PATH",
        type=Path,
        help="where to update the ratios; quick runs and runs "
        "without peers\nupdate nothing unless this is given",
    )
    options = parser.parse_args()
    if options.json is None and not (options.quick or options.no_peers):
        options.json = Path(__file__).with_name("ratios.json")
    return options


def write(path: Path, entries: dict[str, object]) -> None:
    """Put the entries into the file; cases that were not run keep theirs."""
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known.update(entries)
    path.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if any(os.environ.get(name) != value for name, value in ENVIRONMENT.items()):
        # These are read when a library is loaded, so they must stand before the process starts.
        os.execve(
            sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **ENVIRONMENT}
        )
    sys.exit(main())
