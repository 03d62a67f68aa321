"""Checks of docker/ that no schema covers. Usage: lint_docker.py COMPOSE-FILE...

The first file is the base, others are overrides.
"""

import json
import pathlib
import re
import sys
from collections.abc import Iterator

import promql_parser
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCKER = ROOT / "docker"
# A test of the gateway keeps this page equal to its exported metrics, with each metric and label once.
EXPORTED = ROOT / "gateway/src/telemetry/snapshots/pushdown_gateway__telemetry__metrics__tests__the_page_lists_every_metric.snap"
# Added by Prometheus: whether a target answered, and the source of a sample.
ADDED_METRICS, ADDED_LABELS = {"up"}, {"instance", "job"}
HARDENED = {"read_only": True, "cap_drop": ["ALL"], "security_opt": ["no-new-privileges:true"]}
# Where Compose mounts secrets.
SECRETS = "/run/secrets/"
# Services that must not share CPUs.
PINNED = {"store": "STORE_CPUS", "gateway": "GATEWAY_CPUS", "bench": "TRAINER_CPUS"}


def main(files: list[pathlib.Path]) -> list[str]:
    """All faults."""
    services = yaml.safe_load(files[0].read_text())["services"]
    wrong = [fault for file in files for fault in without_default(file)]
    for name, service in services.items():
        wrong += [f"{name}: {fault}" for fault in [*hardening(name, service), *dependencies(service, services), *mounts(service)]]
    for file in files[1:]:
        overrides = yaml.safe_load(file.read_text())
        for name, service in overrides["services"].items():
            faults = [*mounts(service), *secrets(service, overrides.get("secrets", {}))]
            wrong += [f"{file.name}: {name}: {fault}" for fault in faults]
    return [*wrong, *shared_cpus(services), *monitoring(services), *dashboards()]


def without_default(file: pathlib.Path) -> Iterator[str]:
    """Variables without a default."""
    for variable in re.findall(r"(?<!\$)\$(?!\$)(\{[^}]*\}|\w+)", file.read_text()):
        if not re.fullmatch(r"\{[A-Z_]+:-[^}]+\}", variable):
            yield f"{file.name}: found ${variable}, expected a default such as ${{NAME:-value}}"


def hardening(name: str, service: dict) -> Iterator[str]:
    for key, expected in HARDENED.items():
        if service.get(key) != expected:
            yield f"found {key}: {service.get(key)}, expected {expected}"
    if not service.get("tmpfs"):
        yield "its root is read-only, expected a tmpfs"
    if not service.get("mem_limit"):
        yield "expected a mem_limit"
    if name in PINNED and f"${{{PINNED[name]}:-" not in str(service.get("cpuset")):
        yield f"found cpuset: {service.get('cpuset')}, expected {PINNED[name]}"


def shared_cpus(services: dict) -> Iterator[str]:
    """CPUs that two pinned services share by default."""
    taken: dict[int, str] = {}
    for name, variable in PINNED.items():
        default = re.fullmatch(rf"\$\{{{variable}:-(.*)\}}", str(services[name].get("cpuset")))
        for cpu in cpus(default[1]) if default else []:
            if cpu in taken:
                yield f"{name}: its default CPU {cpu} is also that of {taken[cpu]}"
            taken[cpu] = name


def cpus(text: str) -> list[int]:
    """The CPUs of a set, such as `0,2-3`."""
    ends = [list(map(int, part.split("-"))) for part in text.split(",")]
    return [cpu for first, *last in ends for cpu in range(first, (last or [first])[0] + 1)]


def dependencies(service: dict, services: dict) -> Iterator[str]:
    """The dependencies of a service start with it, and have the health checks that it waits for."""
    for name, dependency in service.get("depends_on", {}).items():
        missing = set(service["profiles"]) - set(services[name]["profiles"])
        if missing and dependency.get("required", True):
            yield f"it needs {name}, but the profile {', '.join(missing)} does not start it"
        if dependency["condition"] == "service_healthy" and "healthcheck" not in services[name]:
            yield f"it waits for the health of {name}, expected a health check there"


def mounts(service: dict) -> Iterator[str]:
    for volume in service.get("volumes", []):
        source = volume.partition(":")[0]
        if source.startswith("./") and not (DOCKER / source).exists():
            yield f"{source} does not exist in docker/"


def secrets(service: dict, declared: dict) -> Iterator[str]:
    """The secrets of a service are declared, and the paths in its environment are those of its secrets."""
    used = service.get("secrets", [])
    for name in used:
        if name not in declared:
            yield f"the secret {name} is not declared"
    for variable, value in service.get("environment", {}).items():
        if str(value).startswith(SECRETS) and value.removeprefix(SECRETS) not in used:
            yield f"{variable}: {value} is not a secret of it"


def monitoring(services: dict) -> list[str]:
    """Scraped addresses belong to services, and provisioned folders are mounted."""
    provisioning = DOCKER / "grafana/provisioning"
    scraped = yaml.safe_load((DOCKER / "prometheus.yml").read_text())["scrape_configs"]
    addresses = [target for job in scraped for group in job["static_configs"] for target in group["targets"]]
    sources = yaml.safe_load((provisioning / "datasources/prometheus.yaml").read_text())["datasources"]
    addresses += [source["url"].removeprefix("http://") for source in sources]
    wrong = []
    for address in addresses:
        name, _, port = address.partition(":")
        if not any(published.endswith(f":{port}") for published in services.get(name, {}).get("ports", [])):
            wrong.append(f"{address} is not a port of a service")
    mounted = [volume.split(":")[1] for volume in services["grafana"]["volumes"]]
    for provider in yaml.safe_load((provisioning / "dashboards/pushdown.yaml").read_text())["providers"]:
        if provider["options"]["path"] not in mounted:
            wrong.append(f"the dashboard folder {provider['options']['path']} is not mounted")
    uids = {source["uid"] for source in sources}
    for file in (DOCKER / "grafana/dashboards").glob("*.json"):
        used = set(re.findall(r'"type": "prometheus", "uid": "([^"]*)"', file.read_text()))
        wrong += [f"{file.name}: unknown data source {uid}" for uid in used - uids]
    return wrong


def dashboards() -> list[str]:
    """Each query is valid PromQL on metrics and labels that the gateway exports."""
    page = [line for line in EXPORTED.read_text().splitlines() if re.match(r"(process|pushdown)_", line)]
    metrics = {re.match(r"\w+", line)[0] for line in page} | ADDED_METRICS
    labels = {label for line in page for label in re.findall(r'(\w+)="', line)} | ADDED_LABELS
    wrong, queries = [], 0
    for file in (DOCKER / "grafana/dashboards").glob("*.json"):
        dashboard = json.loads(file.read_text())
        variables = [variable["query"]["query"] for variable in dashboard["templating"]["list"]]
        for query in [*expressions(dashboard), *filter(None, map(first_argument, variables))]:
            queries += 1
            try:
                unknown = names(query) - metrics - labels
            except ValueError as error:
                wrong.append(f"{file.name}: {query}: {error}")
            else:
                wrong += [f"{file.name}: {query}: the gateway does not export {name}" for name in sorted(unknown)]
    if not wrong:
        print(f"lint-docker: {queries} dashboard queries use only exported metrics")
    return wrong


def expressions(dashboard: dict) -> Iterator[str]:
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield target["expr"].replace("$__rate_interval", "1m")


def first_argument(variable: str) -> str | None:
    """The metric in `label_values(metric, label)`."""
    found = re.fullmatch(r"label_values\((.+), \w+\)", variable)
    return found[1] if found else None


def names(query: str) -> set[str]:
    """The metrics and labels of a query."""
    found = set()

    def visit(node: object) -> bool:
        if isinstance(node, promql_parser.VectorSelector):
            found.add(node.name)
            found.update(matcher.name for matcher in node.matchers.matchers)
        elif isinstance(node, promql_parser.AggregateExpr) and node.modifier:
            found.update(node.modifier.labels)
        return True

    promql_parser.walk(promql_parser.parse(query), visit)
    return found


if __name__ == "__main__":
    faults = main([pathlib.Path(argument) for argument in sys.argv[1:]])
    for fault in faults:
        print(f"lint-docker: {fault}", file=sys.stderr)
    sys.exit(bool(faults))
