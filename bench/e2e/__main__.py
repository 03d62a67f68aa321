"""The end-to-end benchmark: `scripts/e2e.sh run features-100mbit`."""

import argparse
import os
import signal
import sys
from pathlib import Path

from programs import ROOT

from . import compare, document, guard, machine, results, run, scenario

INSIDE = "inside"
NO_WAY_OUT = (
    "a store elsewhere cannot be reached from the namespaces whose links are shaped. --no-shaping leaves links as they are, "
    "--interface NAME shapes a network device of this machine"
)


def main() -> int:
    """Does what the command line says."""
    arguments = parser().parse_args()
    try:
        return arguments.command(arguments)
    except (results.ResultsError, scenario.ScenarioError) as error:
        print(f"e2e: {error}", file=sys.stderr)
        return 1


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="e2e", description="Store, gateway and trainer, measured as a whole.")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for name, command, what in (
        ("run", watch, "Measure scenarios"),
        (INSIDE, measure, argparse.SUPPRESS),
    ):
        one = commands.add_parser(name, description=what) if name == INSIDE else commands.add_parser(name, help=what)
        one.set_defaults(command=command)
        one.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="by name or as a file; without any, the default matrix")
        one.add_argument("--full", action="store_true", help="all scenarios, not only the default matrix")
        one.add_argument("--repeats", type=positive, metavar="N", help="rounds of each cell, in place of the scenario's")
        one.add_argument("--results", type=Path, metavar="DIR", default=ROOT / "bench/results", help="[default: bench/results]")
        one.add_argument("--check", action="store_true", help="end with 1 where a verdict is a fail, too")
        one.add_argument("--no-shaping", action="store_true", help="leave links as they are, which takes no rights")
        one.add_argument("--upstream", metavar="URL", help="a store that runs already; keys by AWS_ACCESS_KEY_ID and so on")
        one.add_argument("--gateway", metavar="URL", help="a gateway that runs already, before that store")
        one.add_argument("--gateway-admin", metavar="URL", help="its admin port")
        one.add_argument("--interface", metavar="NAME", help="shape this network device in place of links between namespaces")
    one = commands.add_parser("list", help="Tell which scenarios there are")
    one.set_defaults(command=tell)
    one = commands.add_parser("report", help="Write the report and the plots of results once more")
    one.set_defaults(command=again)
    one.add_argument("results", type=Path, metavar="RESULTS.json")
    one = commands.add_parser("document", help="Write docs/BENCHMARKS.md and its figures from recorded results")
    one.set_defaults(command=write_document)
    one.add_argument("results", type=Path, metavar="RESULTS.json")
    one.add_argument("page", type=Path, metavar="PAGE.md")
    one = commands.add_parser("compare", help="Hold the results of two runs against each other")
    one.set_defaults(command=hold)
    one.add_argument("a", type=Path, metavar="A.json")
    one.add_argument("b", type=Path, metavar="B.json")
    return top


def positive(text: str) -> int:
    """A number of rounds."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} found, expected a whole number from 1 on")
    return int(text)


def chosen(arguments: argparse.Namespace) -> list[scenario.Scenario]:
    """The scenarios that were named, or those of the default matrix."""
    known = scenario.all_of()
    if not arguments.scenarios:
        return [each for each in known.values() if each.default or arguments.full]
    found = []
    for name in arguments.scenarios:
        if name in known:
            found.append(known[name])
        elif name.endswith(".toml"):
            found.append(scenario.load(Path(name)))
        else:
            raise scenario.ScenarioError(f"no scenario is called {name!r}, expected a file or one of {', '.join(known)}")
    return found


def watch(arguments: argparse.Namespace) -> int:
    """Runs the same command line once more, watched over. What is wrong with it is told before."""
    chosen(arguments)
    if (arguments.gateway or arguments.gateway_admin) and not (arguments.upstream and arguments.gateway):
        print("e2e: --gateway goes with --upstream", file=sys.stderr)
        return 2
    if arguments.upstream and not (arguments.no_shaping or arguments.interface):
        print(f"e2e: --upstream {machine.public(arguments.upstream)}: {NO_WAY_OUT}", file=sys.stderr)
        return 2
    rest = sys.argv[sys.argv.index("run") + 1 :]
    return guard.watched([sys.executable, "-m", "e2e", INSIDE, *rest])


def measure(arguments: argparse.Namespace) -> int:
    """Runs them, and prints the report."""
    if guard.FOLDER not in os.environ:
        print("e2e: `run` starts this", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = run.Options(
        chosen(arguments),
        arguments.results,
        shaping=not arguments.no_shaping,
        upstream=arguments.upstream,
        gateway=arguments.gateway,
        admin=arguments.gateway_admin,
        interface=arguments.interface,
        repeats=arguments.repeats,
        flags=flags(arguments),
    )
    try:
        file = run.run(options)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    finally:
        guard.clear()
    print(file.with_suffix(".md").read_text(encoding="utf-8"))
    print(f"written to {file}, the report beside it")
    return run.status(results.load(file), arguments.check)


def flags(arguments: argparse.Namespace) -> tuple[str, ...]:
    """What was said of all scenarios, for whoever runs them again. No password is."""
    named = {"--upstream": arguments.upstream, "--gateway": arguments.gateway, "--gateway-admin": arguments.gateway_admin}
    named |= {"--interface": arguments.interface, "--repeats": arguments.repeats}
    said = [part for flag, value in named.items() if value is not None for part in (flag, machine.public(str(value)))]
    return (*said, *(["--no-shaping"] if arguments.no_shaping else []))


def tell(_: argparse.Namespace) -> int:
    """The names, and what they are."""
    for each in scenario.all_of().values():
        print(f"{each.name:28} {'' if each.default else '(FULL=1) '}{each.title}")
    return 0


def again(arguments: argparse.Namespace) -> int:
    """The report once more, from the file."""
    found = results.load(arguments.results)
    run.write(found, arguments.results)
    print(arguments.results.with_suffix(".md").read_text(encoding="utf-8"))
    return 0


def write_document(arguments: argparse.Namespace) -> int:
    """Writes the page of figures, from the recorded file."""
    for path in document.write(results.load(arguments.results), arguments.results, arguments.page):
        print(f"e2e: wrote {path}")
    return 0


def hold(arguments: argparse.Namespace) -> int:
    """Ratios of two runs."""
    print(compare.markdown(results.load(arguments.a), results.load(arguments.b)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
