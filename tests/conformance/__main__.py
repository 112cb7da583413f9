"""The table of what agrees with PyTorch: `python -m tests.conformance [--kind values ..] [--only NAME] [--json FILE]`."""

import argparse
import contextlib
import functools
import json
import signal
import sys
import traceback
import warnings

import genesis
from tests.conformance import modules, nested, operators, optimizers, samples, sparse
from tests.conformance.converting import UnconvertibleError
from tests.conformance.expected import FAILURES

SECONDS = 90  # of the processor's time, for one check of one entry


class TooLongError(Exception):
    """A check that takes longer than that."""


def _late(signum, frame):
    raise TooLongError


def outcome(check, entry):
    """"ok", "-" where the check does not apply, or why it fails."""
    signal.signal(signal.SIGPROF, _late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        check(entry)
    except (NotImplementedError, UnconvertibleError) as none:
        return "-" if not str(none) or isinstance(none, UnconvertibleError) else f"NotImplementedError: {none}"
    except Exception as failure:
        signal.setitimer(signal.ITIMER_PROF, 0)
        place = traceback.extract_tb(failure.__traceback__)[-1]
        return f"{type(failure).__name__}: {str(failure).strip()[:600]} [{place.filename.rpartition('/')[2]}:{place.lineno}]"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "ok"


def suites():
    """The suites by name: (entries, what an entry is called, checks)."""
    return {"operators": (samples.entries(), samples.title, operators.CHECKS),
            "modules": (modules.entries(), modules.title, modules.CHECKS),
            "optimizers": (optimizers.entries(), optimizers.title, optimizers.CHECKS),
            "sparse": (sparse.entries(), sparse.title, sparse.CHECKS),
            "nested": (nested.entries(), nested.title, nested.CHECKS)}


def main():
    """Run what is asked for and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", nargs="*")
    parser.add_argument("--kind", nargs="*")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--json")
    parser.add_argument("--limit", type=int, help="samples of each entry; all, if not given")
    parser.add_argument("--kernels", action="store_true", help="compute by kernels; else by the NumPy references")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    found = {}
    for suite, (entries, title, checks) in suites().items():
        if given.suite and suite not in given.suite:
            continue
        for kind, check in checks.items():
            if given.kind and kind not in given.kind:
                continue
            results = found[f"{suite} {kind}"] = {}
            for entry in entries:
                if given.only and title(entry) not in given.only and getattr(entry, "name", "") not in given.only:
                    continue
                with contextlib.nullcontext() if given.kernels or kind == "compile" else genesis.eager():
                    whole = given.limit is None or suite == "optimizers"
                    limited = check if whole else functools.partial(check, limit=given.limit)
                    results[title(entry)] = outcome(limited, entry)
            _show(f"{suite} {kind}", results, FAILURES.get(f"{suite} {kind}", {}), bool(given.only))
            if given.json:
                with open(given.json, "w") as file:
                    json.dump(found, file, indent=1)


def _show(name, results, expected, in_full):
    applying = {title: text for title, text in results.items() if text != "-"}
    failing = {title: text for title, text in applying.items() if text != "ok"}
    print(f"{name}: {len(applying) - len(failing)}/{len(applying)}, {len(failing.keys() & expected.keys())} expected to fail")
    for title, text in failing.items():
        if title not in expected:
            print(f"    {title}: {text if in_full else text.splitlines()[0][:160]}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
