# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of scripts/fidelity: one HTML file with its plots inside, as a review of the model would show them."""

import html
import io
import statistics

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402  # the backend comes first

import figures
import recipes
import storage_bench
from bench import side_of
from workloads import as_ssd, atto, fill, job, random_4k, sequential_128k, torture, trim_all

CARD, DRIVE = recipes.CARD, "vertex3-120"
NAMES = {CARD: "RevoDrive 3 X2 480 GB", DRIVE: "Vertex 3 120 GB (one of its drives)"}
matplotlib.rcParams.update({"svg.hashsalt": "fidelity", "svg.fonttype": "none", "figure.figsize": (8, 4),
                            "axes.grid": True, "axes.axisbelow": True, "grid.alpha": 0.4})
STYLE = """body{font:15px/1.45 sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;font-size:13px}td,th{border-bottom:1px solid #ddd;padding:2px 8px;text-align:left}
td.n{text-align:right}tr.off{background:#fde8e8}h2{margin-top:2em}svg{max-width:100%;height:auto}"""


def svg(figure):
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)
    text = stream.getvalue()
    return text[text.index("<svg"):]


def bars(groups, series, unit):
    """groups: labels of the axis; series: name -> values."""
    figure, axes = plt.subplots()
    width = 0.8 / len(series)
    for position, (name, values) in enumerate(series.items()):
        places = [i + (position - (len(series) - 1) / 2) * width for i in range(len(groups))]
        drawn = axes.bar(places, values, width, label=name)
        axes.bar_label(drawn, fmt="%.0f", fontsize=7)
    axes.set_xticks(range(len(groups)), groups)
    axes.set_ylabel(unit)
    axes.legend(fontsize=8)
    return svg(figure)


def lines(xs, series, x_label, unit):
    figure, axes = plt.subplots()
    for name, values in series.items():
        axes.plot(range(len(xs)), values, marker="o", label=name)
    axes.set_xticks(range(len(xs)), xs)
    axes.set_xlabel(x_label)
    axes.set_ylabel(unit)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8)
    return svg(figure)


class Plots:
    def __init__(self, simulate):
        self.bench = recipes.Bench(simulate)
        self.other = recipes.Bench(simulate, "dispatch")

    def four_corners(self):
        tests = {"128K read": ("read", lambda data: (fill(data, "4g"), sequential_128k("read", 1, span="4g"))),
                 "128K write": ("write", lambda data: (sequential_128k("write", 1, data),)),
                 "4K read QD3": ("read", lambda data: (fill(data, "8g"), random_4k("randread", 3))),
                 "4K write QD3": ("write", lambda data: (random_4k("randwrite", 3, data),)),
                 "4K read QD32": ("read", lambda data: (fill(data, "8g"), random_4k("randread", 32))),
                 "4K write QD32": ("write", lambda data: (random_4k("randwrite", 32, data),))}
        series = {f"{NAMES[profile]}, {data}": [self.bench.rate(profile, *make(data)) for _, make in tests.values()]
                  for profile in (CARD, DRIVE) for data in ("compressible", "incompressible")}
        return bars(list(tests), series, "MB/s")

    def atto(self):
        sizes = ["4k", "8k", "16k", "32k", "64k", "128k", "256k", "512k", "1m", "2m", "4m", "8m"]
        series = {f"{NAMES[profile]}, {rw}": [self.bench.rate(profile, *self.atto_jobs(rw, size)) for size in sizes]
                  for profile in (CARD, DRIVE) for rw in ("read", "write")}
        return lines(sizes, series, "transfer size, queue depth 4", "MB/s")

    @staticmethod
    def atto_jobs(rw, size):
        return (fill("compressible", "256m"), atto("read", size)) if rw == "read" else (atto("write", size),)

    def depths(self):
        depths = [1, 2, 3, 4, 8, 16, 32, 64, 128]
        series = {}
        for profile in (CARD, DRIVE):
            series[f"{NAMES[profile]}, read"] = [
                self.bench.rate(profile, fill("compressible", "8g"), random_4k("randread", depth)) for depth in depths]
            series[f"{NAMES[profile]}, write"] = [
                self.bench.rate(profile, random_4k("randwrite", depth)) for depth in depths]
        return lines(depths, series, "queue depth, 4 KiB random", "MB/s")

    def wear(self):
        small = {"vertex3-240": recipes.SMALL_DRIVE, "vertex3-120": ("card.member_bytes=7502135296",),
                 "electra-max-960": recipes.SMALL_ELECTRA}
        states = {"clean": (), "after torture": (torture(75),), "after TRIM": (torture(75), trim_all())}
        series = {name: [self.bench.rate(profile, *before, as_ssd("write", 16), overrides=overrides,
                                         preset="full" if before else "fresh")
                         for profile, overrides in small.items()] for name, before in states.items()}
        return bars(list(small), series, "MB/s, AS SSD sequential write")

    def policies(self):
        """Plain striping, as Linux users found it, and OCZ's queue dispatch: what the reviews' tests say to each."""
        rows = ["<table><tr><th>id<th>workload<th>QD<th>published<th>stripe<th>dispatch</tr>"]
        known = figures.load()
        for name in ("F009", "F010", "F012", "F013", "F015", "F016", "F017", "F018", "F100", "F108", "F109", "F111"):
            figure = known[name]
            values = [recipes.RECIPES[name](bench) for bench in (self.bench, self.other)]
            cells = "".join(f"<td class=n>{value:.4g}" for value in values)
            rows.append(f"<tr><td>{name}<td>{html.escape(figure.workload)}<td>{figure.depth}"
                        f"<td class=n>{figure.value:g} {figure.unit}{cells}</tr>")
        return "\n".join(rows) + "</table>"

    def storage_bench(self):
        products = [CARD, "revodrive3-240", "vertex3-240", "vertex3-120", "electra-max-960", "octane-512-fw113"]
        rates, busy = {}, {}
        for name, trace in storage_bench.TRACES.items():
            results = [self.play(profile, trace) for profile in products]
            rates[name] = [rate for rate, _ in results]
            busy[name] = [seconds / storage_bench.SHARE for _, seconds in results]
        return bars(products, rates, "MB/s") + bars(products, busy, "busy time, s")

    def play(self, profile, trace):
        outcome = self.bench.run(profile, *storage_bench.jobs(trace))
        moved = sum(job[side]["io_bytes"] for job in outcome.jobs.values() for side in ("read", "write"))
        seconds = sum(max(job[side]["runtime"] for side in ("read", "write")) for job in outcome.jobs.values()) / 1000
        return moved / seconds / 1e6, seconds

    def breakdown(self):
        tests = {"read QD1": (fill("compressible", "8g"), random_4k("randread", 1)),
                 "read QD32": (fill("compressible", "8g"), random_4k("randread", 32)),
                 "write QD1": (random_4k("randwrite", 1),), "write QD32": (random_4k("randwrite", 32),),
                 "128K read QD1": (fill("compressible", "4g"), sequential_128k("read", 1, span="4g")),
                 "128K write, incompressible": (sequential_128k("write", 32, "incompressible"),)}
        shares = {name: self.stages(jobs) for name, jobs in tests.items()}
        figure, axes = plt.subplots()
        left = [0.0] * len(tests)
        for stage in next(iter(shares.values())):
            values = [shares[name].get(stage, 0) / 1000 for name in tests]
            if max(values) > 0:
                axes.barh(list(tests), values, left=left, label=stage)
            left = [a + b for a, b in zip(left, values)]
        axes.set_xlabel("mean latency by stage, us")
        axes.legend(fontsize=7)
        return svg(figure)

    def stages(self, jobs):
        """Mean ns of each stage of the last job's commands; of writes, if it writes: a fill before it is in them."""
        side = side_of(jobs[-1][1])
        of_run = self.bench.run(CARD, *jobs).extra()["stages"][side]
        return {key[:-3]: value for key, value in of_run.items() if key.endswith("_ns") and key != "mean_ns"}


def table(verdicts):
    rows = ["<table><tr><th>id<th>device<th>state<th>workload<th>block<th>QD<th>data<th>published<th>model<th>error"
            "<th>source<th>why not</tr>"]
    for verdict in verdicts:
        figure = verdict.figure
        value = "-" if verdict.value is None else f"{verdict.value:.4g}"
        error = verdict.problem if verdict.value is None else f"{100 * verdict.error:+.1f} %"
        fitted = " *" if figure.id in recipes.USED_TO_FIT else ""
        cells = [figure.id + fitted, figure.device, figure.state, figure.workload, figure.block, figure.depth,
                 figure.data]
        bound = "" if figure.bound == "is" else figure.bound + " "
        rows.append(f"<tr{'' if verdict.passed else ' class=off'}>" + "".join(f"<td>{html.escape(c)}" for c in cells)
                    + f"<td class=n>{bound}{figure.value:g} {html.escape(figure.unit)}<td class=n>{value}<td class=n>"
                    + f"{html.escape(error)}<td>{html.escape(figure.source)}<td>{html.escape(verdict.remark)}</tr>")
    return "\n".join(rows) + "</table>"


def left_out(known):
    rows = [f"<tr><td>{name}<td>{html.escape(known[name].device)}<td>{html.escape(known[name].metric)}"
            f"<td>{html.escape(reason)}</tr>" for name, reason in sorted(recipes.OUTSIDE.items())]
    return "<table><tr><th>id<th>device<th>figure<th>why not</tr>" + "\n".join(rows) + "</table>"


def write(verdicts, simulate, folder):
    plots = Plots(simulate)
    errors = [abs(v.error) for v in verdicts if v.error is not None]
    parts = [
        ("The four corners", plots.four_corners()), ("ATTO", plots.atto()), ("Queue depth", plots.depths()),
        ("Clean, tortured, trimmed", plots.wear()), ("Storage Bench 2011, remade", plots.storage_bench()),
        ("Where the time goes", plots.breakdown()),
        ("Stripe and dispatch", plots.policies()), ("Every figure", table(verdicts)),
        ("Figures that cannot be compared", left_out(figures.load()))]
    body = "".join(f"<h2>{html.escape(title)}</h2>{content}" for title, content in parts)
    passed = sum(verdict.passed for verdict in verdicts)
    head = (f"<p>{passed} of {len(verdicts)} published figures reproduced; median error "
            f"{100 * statistics.median(errors):.1f} %. Tolerance: 5 % for the three source reviews, "
            "15 % for the others. * marks figures that numbers of the profiles were fitted on.</p>")
    page = ("<!doctype html><meta charset=utf-8><title>Fidelity</title>"
            f"<style>{STYLE}</style><h1>Fidelity</h1>{head}{body}")
    file = folder / "index.html"
    file.write_text(page, encoding="utf-8")
    return file
