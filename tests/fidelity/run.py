# SPDX-License-Identifier: GPL-2.0-or-later
"""What scripts/fidelity does: every comparable figure of figures.csv from the model, beside the published one."""

import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import statistics
import sys
import time

import figures
import recipes
from simulator import SimulationError, Simulator

ROOT = pathlib.Path(__file__).parents[2]
# A spread of what is cheap to run and reproduced: the test suite has it as a guard.
QUICK = """F001 F002 F007 F009 F010 F013 F015 F016 F038 F048 F058 F059 F064 F065 F101 F109 F117 F119 F124 F126 F130 F133
F135 F136 F139 F140 F145 F146 F156 F171 F183 F185 F186 F189""".split()


@dataclasses.dataclass(frozen=True)
class Verdict:
    figure: figures.Figure
    value: float = None
    problem: str = ""

    @property
    def passed(self):
        return self.value is not None and self.figure.reproduced_by(self.value)

    @property
    def settled(self):
        """Reproduced, or one of those that are not and for which there is a reason."""
        return self.value is not None and self.passed != (self.figure.id in recipes.UNREACHED)

    @property
    def remark(self):
        if not self.passed:
            return recipes.UNREACHED.get(self.figure.id, "")
        return "" if self.settled else "reproduced now: it has to go from UNREACHED in recipes.py"

    @property
    def error(self):
        return None if self.value is None else self.figure.error(self.value)


def judge(figure, simulate):
    try:
        return Verdict(figure, float(recipes.RECIPES[figure.id](recipes.Bench(simulate))))
    except (SimulationError, KeyError, ZeroDivisionError) as error:
        return Verdict(figure, problem=f"{type(error).__name__}: {error}")


def judge_all(chosen, simulate, workers):
    done = 0
    began = time.monotonic()
    verdicts = {}
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        waiting = {pool.submit(judge, figure, simulate): figure for figure in chosen}
        for future in concurrent.futures.as_completed(waiting):
            verdicts[waiting[future].id] = future.result()
            done += 1
            if sys.stderr.isatty():
                print(f"\r{done} of {len(chosen)} figures, {time.monotonic() - began:.0f} s", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return [verdicts[figure.id] for figure in chosen]


def line(verdict):
    figure = verdict.figure
    depth = f"QD {figure.depth}" if figure.depth else ""
    what = " ".join(filter(None, (figure.device, figure.workload, figure.block, depth, figure.data)))[:74]
    wanted = f"{'' if figure.bound == 'is' else figure.bound + ' '}{figure.value:g}"
    if verdict.value is None:
        return f"{figure.id} {what:74} {wanted:>18} {figure.unit:6} -- {verdict.problem}"
    mark = "ok" if verdict.passed else "off" if verdict.settled else "OFF"
    remark = f": {verdict.remark}" if verdict.remark else ""
    return (f"{figure.id} {what:74} {wanted:>18} {figure.unit:6} {verdict.value:10.4g} {100 * verdict.error:+6.1f} % "
            f"{figure.group:6} {mark}{remark}")


def summary(verdicts):
    lines = []
    for group, tolerance in figures.TOLERANCE.items():
        mine = [v for v in verdicts if v.figure.group == group]
        passed = sum(v.passed for v in mine)
        errors = [abs(v.error) for v in mine if v.error is not None]
        median = f", median error {100 * statistics.median(errors):.1f} %" if errors else ""
        off = sum(not v.passed and v.settled for v in mine)
        known = f", {off} not, with the reason" if off else ""
        lines.append(f"{group}: {passed} of {len(mine)} within {100 * tolerance:.0f} %{known}{median}")
    return lines


def parse(arguments):
    parser = argparse.ArgumentParser(prog="scripts/fidelity", description="The published reviews, by revosim.")
    parser.add_argument("--quick", action="store_true", help="a spread of cheap figures, without the report")
    parser.add_argument("--no-report", action="store_true", help="only the table")
    parser.add_argument("--revosim", default=ROOT / "build/revosim", help="the program (build/revosim)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at once (number of processors)")
    parser.add_argument("figures", nargs="*", metavar="ID", help="only these, as F009")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.figures if name not in recipes.RECIPES]
    if unknown:
        parser.error(f"{unknown[0]}: " + (recipes.OUTSIDE.get(unknown[0]) or "no such figure in figures.csv"))
    return options


def main(arguments=None):
    options = parse(arguments)
    known = figures.load()
    wanted = options.figures or (QUICK if options.quick else recipes.RECIPES)
    chosen = [figure for name, figure in known.items() if name in set(wanted)]
    simulate = Simulator(options.revosim, ROOT / "build/fidelity/runs")
    verdicts = judge_all(chosen, simulate, options.jobs)
    for verdict in verdicts:
        print(line(verdict))
    if not options.figures:
        print(f"not comparable: {len(recipes.OUTSIDE)} figures; why: tests/fidelity/recipes.py, and the report")
    print(*summary(verdicts), sep="\n")
    if not (options.quick or options.no_report or options.figures):
        import report

        print(f"report: {report.write(verdicts, simulate, ROOT / 'build/fidelity').relative_to(ROOT)}")
    broken = [verdict for verdict in verdicts if verdict.value is None]
    return 2 if broken else 0 if all(verdict.settled for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
