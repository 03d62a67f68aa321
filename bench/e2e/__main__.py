"""The command line of the end-to-end benchmark, `scripts/e2e.sh run features-100mbit`, and of the reports of all benchmarks.

A command imports what only it needs: `components` runs on the standard library alone, without the packages of `.venv-e2e`.
"""

import argparse
import os
import signal
import sys
from pathlib import Path

from . import components, json_reader, results, scenario

INNER = "inner"
# The name of all scenarios of the default matrix.
DEFAULT = "default"
RESULTS = Path(__file__).resolve().parents[1] / "results"
UNREACHABLE = (
    "an external store is not reachable from the namespaces with shaped links. Use --no-shaping to leave links unshaped, or "
    "--interface NAME to shape a network device of this machine"
)


def main() -> int:
    """Runs the command line."""
    arguments = parser().parse_args()
    try:
        return arguments.command(arguments)
    except (json_reader.ResultsError, scenario.ScenarioError) as error:
        print(f"e2e: {error}", file=sys.stderr)
        return 1


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="e2e", description="Measures store, gateway and trainer as a whole.")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for name, command, what in (
        ("run", run_guarded, "Measure scenarios"),
        (INNER, measure, argparse.SUPPRESS),
    ):
        one = commands.add_parser(name, description=what) if name == INNER else commands.add_parser(name, help=what)
        one.set_defaults(command=command)
        names = "names or files, also several in one argument; `default` is the default matrix [default: default]"
        one.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=names)
        one.add_argument("--full", action="store_true", help="run all scenarios, not only the default matrix")
        rounds = "rounds of each cell; `scenario` leaves them to each scenario [default: scenario]"
        one.add_argument("--rounds", type=rounds_or_none, metavar="N", help=rounds)
        one.add_argument("--results", type=Path, metavar="DIR", default=RESULTS, help="[default: bench/results]")
        one.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
        one.add_argument("--no-shaping", action="store_true", help="leave links unshaped, which needs no privileges")
        one.add_argument("--upstream", metavar="URL", help="an external store; keys from AWS_ACCESS_KEY_ID etc.")
        one.add_argument("--gateway", metavar="URL", help="an external gateway in front of that store")
        one.add_argument("--gateway-admin", metavar="URL", help="the admin port of that gateway")
        one.add_argument("--interface", metavar="NAME", help="shape this network device instead of links between namespaces")
    one = commands.add_parser("list", help="List the scenarios")
    one.set_defaults(command=list_scenarios)
    one = commands.add_parser("report", help="Rewrite the report and the plots of recorded results")
    one.set_defaults(command=rewrite_report)
    one.add_argument("results", type=Path, metavar="RESULTS.json")
    one = commands.add_parser("document", help="Write docs/BENCHMARKS.md, its sections and its figures from recorded results")
    one.set_defaults(command=write_document)
    one.add_argument("results", type=Path, metavar="RESULTS.json")
    one.add_argument("page", type=Path, metavar="PAGE.md")
    one = commands.add_parser("compare", help="Compare the results of two runs")
    one.set_defaults(command=compare_runs)
    one.add_argument("a", type=Path, metavar="A.json")
    one.add_argument("b", type=Path, metavar="B.json")
    one = commands.add_parser("components", help="Print the tables of component benchmarks, from the JSON of pushdown-bench")
    one.set_defaults(command=print_components)
    one.add_argument("results", type=Path, metavar="RESULTS.json")
    return top


def rounds_or_none(text: str) -> int | None:
    """A number of rounds, or none if each scenario has its own. Compose files name a default where a variable is not set."""
    if text == "scenario":
        return None
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, or `scenario`, found {text!r}")
    return int(text)


def selected_scenarios(arguments: argparse.Namespace) -> list[scenario.Scenario]:
    """The scenarios of the command line, or those of the default matrix."""
    known = scenario.load_all()
    selected = []
    for name in " ".join(arguments.scenarios).split() or [DEFAULT]:
        if name == DEFAULT:
            selected += [each for each in known.values() if each.default or arguments.full]
        elif name in known:
            selected.append(known[name])
        elif name.endswith(".toml"):
            selected.append(scenario.load(Path(name)))
        else:
            raise scenario.ScenarioError(f"unknown scenario {name!r}: expected a file or one of {', '.join(known)}")
    return selected


def run_guarded(arguments: argparse.Namespace) -> int:
    """Checks the command line, then runs it again in a guarded process."""
    from . import guard, machine

    selected_scenarios(arguments)
    if (arguments.gateway or arguments.gateway_admin) and not (arguments.upstream and arguments.gateway):
        print("e2e: --gateway requires --upstream, and --gateway-admin requires --gateway", file=sys.stderr)
        return 2
    if arguments.upstream and not (arguments.no_shaping or arguments.interface):
        print(f"e2e: --upstream {machine.without_credentials(arguments.upstream)}: {UNREACHABLE}", file=sys.stderr)
        return 2
    rest = sys.argv[sys.argv.index("run") + 1 :]
    return guard.run_watched([sys.executable, "-m", "e2e", INNER, *rest])


def measure(arguments: argparse.Namespace) -> int:
    """Measures the scenarios and prints the report."""
    from . import guard, run

    if guard.FOLDER not in os.environ:
        print("e2e: `run` starts this command", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = run.Options(
        selected_scenarios(arguments),
        arguments.results,
        shaping=not arguments.no_shaping,
        upstream=arguments.upstream,
        gateway=arguments.gateway,
        admin=arguments.gateway_admin,
        interface=arguments.interface,
        rounds=arguments.rounds,
        flags=flags(arguments),
    )
    try:
        file = run.run_scenarios(options)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    finally:
        guard.remove_folder()
    print(file.with_suffix(".md").read_text(encoding="utf-8"))
    print(f"wrote {file}, with the report next to it")
    return run.exit_status(results.load(file), arguments.check)


def flags(arguments: argparse.Namespace) -> tuple[str, ...]:
    """The flags that apply to all scenarios, for the command in the report. Passwords are removed."""
    from . import machine

    named = {"--upstream": arguments.upstream, "--gateway": arguments.gateway, "--gateway-admin": arguments.gateway_admin}
    named |= {"--interface": arguments.interface, "--rounds": arguments.rounds}
    given = {flag: value for flag, value in named.items() if value is not None}
    parts = [part for flag, value in given.items() for part in (flag, machine.without_credentials(str(value)))]
    return (*parts, *(["--no-shaping"] if arguments.no_shaping else []))


def list_scenarios(_: argparse.Namespace) -> int:
    """Prints the names and titles."""
    for each in scenario.load_all().values():
        print(f"{each.name:28} {'' if each.default else '(FULL=1) '}{each.title}")
    return 0


def rewrite_report(arguments: argparse.Namespace) -> int:
    """Writes the report of a recorded run again."""
    from . import run

    recorded = results.load(arguments.results)
    run.write_report(recorded, arguments.results)
    print(arguments.results.with_suffix(".md").read_text(encoding="utf-8"))
    return 0


def write_document(arguments: argparse.Namespace) -> int:
    """Writes the pages of figures from a recorded run."""
    from . import report

    for path in report.write(results.load(arguments.results), arguments.results, arguments.page):
        print(f"e2e: wrote {path}")
    return 0


def compare_runs(arguments: argparse.Namespace) -> int:
    """Prints the ratios of two runs."""
    from . import compare

    print(compare.markdown(results.load(arguments.a), results.load(arguments.b)))
    return 0


def print_components(arguments: argparse.Namespace) -> int:
    """Prints the tables of component benchmarks."""
    print(components.markdown(components.load(arguments.results)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
