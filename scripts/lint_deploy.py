"""Checks of deploy/: its manifests as kustomize renders them, and its unit of systemd. Usage: lint_deploy.py"""

import collections
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import kubernetes_validate
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
KUSTOMIZE = ROOT / ".cache/deploy/kustomize"
# The oldest version that deploy/README.md names, and the newest one whose schemas the package has.
VERSIONS = ["1.27", kubernetes_validate.latest_version()]
# What the Pod Security Standard "restricted" asks for, and a read-only root.
CONTAINER = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
# Tenths of systemd's scale from 0 (no access) to 10.
MAX_EXPOSURE = 15
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
UNIT = "pushdown-gateway.service"
Documents = list[dict]


def main(deploy: pathlib.Path) -> list[str]:
    """All faults."""
    wrong, count = list(unit(deploy / "systemd")), 0
    kubernetes = deploy / "kubernetes"
    for folder in [kubernetes / "base", *sorted(path.parent for path in kubernetes.glob("overlays/*/kustomization.yaml"))]:
        name = folder.relative_to(kubernetes)
        built = subprocess.run([KUSTOMIZE, "build", folder], capture_output=True, text=True, check=False)
        if built.returncode != 0 or built.stderr:
            wrong.append(f"{name}: kustomize: {built.stderr.strip()}")
        if built.returncode != 0:
            continue
        documents = list(yaml.safe_load_all(built.stdout))
        count += len(documents)
        wrong += [f"{name}: {fault}" for fault in [*schemas(documents), *resources(documents)]]
    if not wrong:
        print(f"lint-deploy: {count} documents of {kubernetes.name} match Kubernetes {' and '.join(VERSIONS)}, {UNIT} has no findings")
    return wrong


def label(document: dict) -> str:
    return f"{document['kind']} {document['metadata']['name']}"


def schemas(documents: Documents) -> Iterator[str]:
    """Deviations from the schemas of Kubernetes. An unknown field is one, too."""
    for document in documents:
        for version in VERSIONS:
            try:
                kubernetes_validate.validate(document, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                path = ".".join(map(str, error.absolute_path))
                yield f"{label(document)}: {path}: {error.message} (Kubernetes {version})"
            except kubernetes_validate.SchemaNotFoundError as error:
                yield f"{label(document)}: {error.message}"


def resources(documents: Documents) -> Iterator[str]:
    """Faults that no schema shows: references that lead nowhere, and pods with more rights than they need."""
    kinds = collections.defaultdict(dict)
    for document in documents:
        kinds[document["kind"]][document["metadata"]["name"]] = document
    sets = kinds["StatefulSet"]
    templates = [document["spec"]["template"] for document in sets.values()]
    for document in sets.values():
        faults = [*hardening(document), *references(document, kinds), *settings(document, kinds["ConfigMap"])]
        yield from (f"{label(document)}: {fault}" for fault in faults)
    for kind in ("Service", "PodDisruptionBudget", "NetworkPolicy"):
        for document in kinds[kind].values():
            yield from (f"{label(document)}: {fault}" for fault in selection(document, templates))
    for document in kinds["HorizontalPodAutoscaler"].values():
        target = document["spec"]["scaleTargetRef"]
        if target["kind"] != "StatefulSet" or target["name"] not in sets:
            yield f"{label(document)}: its target {target['kind']} {target['name']} does not exist"
    for required in ("Service", "PodDisruptionBudget", "NetworkPolicy", "HorizontalPodAutoscaler", "StatefulSet"):
        if not kinds[required]:
            yield f"expected a {required}, found none"


def hardening(stateful_set: dict) -> Iterator[str]:
    pod = stateful_set["spec"]["template"]["spec"]
    context = pod.get("securityContext", {})
    if context.get("seccompProfile") != {"type": "RuntimeDefault"}:
        yield f"found seccompProfile: {context.get('seccompProfile')}, expected RuntimeDefault"
    if pod.get("automountServiceAccountToken") is not False:
        yield "expected automountServiceAccountToken: false"
    for container in pod["containers"] + pod.get("initContainers", []):
        own = container.get("securityContext", {})
        combined = context | own
        if combined.get("runAsNonRoot") is not True or not combined.get("runAsUser"):
            yield f"{container['name']}: expected runAsNonRoot: true and a runAsUser above 0"
        for key, expected in CONTAINER.items():
            if own.get(key) != expected:
                yield f"{container['name']}: found {key}: {own.get(key)}, expected {expected}"
        if not {"cpu", "memory"} <= container.get("resources", {}).get("limits", {}).keys():
            yield f"{container['name']}: expected limits of cpu and memory"
        if not re.search(r"(:(?!latest$)[\w.-]+|@sha256:[0-9a-f]{64})$", container["image"].rpartition("/")[2]):
            yield f"{container['name']}: found image {container['image']}, expected a version"


def references(stateful_set: dict, kinds: dict[str, dict]) -> Iterator[str]:
    """Labels, ports, volumes and objects that are named exist."""
    spec, template = stateful_set["spec"], stateful_set["spec"]["template"]
    pod, labels = template["spec"], template["metadata"]["labels"]
    if not matches(spec["selector"], labels):
        yield f"its selector does not match the labels of its pods, {labels}"
    for constraint in pod.get("topologySpreadConstraints", []):
        if not matches(constraint["labelSelector"], labels):
            yield "a topologySpreadConstraint does not match the labels of its pods"
    service = kinds["Service"].get(spec["serviceName"], {"spec": {}})["spec"]
    if service.get("clusterIP") != "None" or service.get("publishNotReadyAddresses"):
        yield f"expected a headless Service {spec['serviceName']} with ready pods alone"
    account = kinds["ServiceAccount"].get(pod.get("serviceAccountName"), {})
    if account.get("automountServiceAccountToken") is not False:
        yield f"expected a ServiceAccount {pod.get('serviceAccountName')} without a token"
    volumes = {volume["name"] for volume in pod.get("volumes", [])}
    volumes |= {claim["metadata"]["name"] for claim in spec.get("volumeClaimTemplates", [])}
    for container in pod["containers"]:
        ports = {port["name"] for port in container["ports"]}
        for probe in PROBES:
            port = container.get(probe, {}).get("httpGet", {}).get("port")
            if port not in ports:
                yield f"{container['name']}: {probe}: found port {port}, expected one of {sorted(ports)}"
        for mount in container.get("volumeMounts", []):
            if mount["name"] not in volumes:
                yield f"{container['name']}: the volume {mount['name']} does not exist"
        for source in container.get("envFrom", []):
            name = source.get("configMapRef", {}).get("name")
            if name and name not in kinds["ConfigMap"]:
                yield f"{container['name']}: the ConfigMap {name} does not exist"


def settings(stateful_set: dict, maps: dict[str, dict]) -> Iterator[str]:
    """The gateway knows its settings, and those that depend on the pod fit it."""
    pod = stateful_set["spec"]["template"]["spec"]
    for container in pod["containers"]:
        values: dict[str, str] = {}
        for source in container.get("envFrom", []):
            values |= maps.get(source.get("configMapRef", {}).get("name"), {}).get("data", {})
        values |= {variable["name"]: variable.get("value", "") for variable in container.get("env", [])}
        yield from unknown(values)
        grace, drain = pod["terminationGracePeriodSeconds"], seconds(values.get("PUSHDOWN_DRAIN_TIMEOUT", "30s"))
        if grace <= drain:
            yield f"found terminationGracePeriodSeconds: {grace}, expected more than PUSHDOWN_DRAIN_TIMEOUT, {drain} s"
        # The group of a volume may write to its root, which the gateway refuses.
        cache = pathlib.PurePath(values.get("PUSHDOWN_CACHE_DIR", ""))
        mounts = {pathlib.PurePath(mount["mountPath"]) for mount in container.get("volumeMounts", [])}
        if cache.name and not mounts & set(cache.parents):
            yield f"found PUSHDOWN_CACHE_DIR={cache}, expected a folder in a volume"


def selection(document: dict, templates: list[dict]) -> Iterator[str]:
    """It selects pods, and the ports that it names are theirs."""
    spec = document["spec"]
    selector = {"matchLabels": spec["selector"]} if document["kind"] == "Service" else spec.get("selector", spec.get("podSelector"))
    selected = [template for template in templates if matches(selector, template["metadata"]["labels"])]
    if not selected:
        yield f"its selector {selector} matches no pods"
    known = {port["name"] for template in selected for container in template["spec"]["containers"] for port in container["ports"]}
    ports = [port["targetPort"] for port in spec.get("ports", [])]
    ports += [port["port"] for rule in spec.get("ingress", []) for port in rule["ports"]]
    yield from (f"found port {port}, expected one of {sorted(known)}" for port in ports if port not in known)


def matches(selector: dict, labels: dict[str, str]) -> bool:
    """Whether a selector of labels alone, without expressions, has labels, and these are among those of a pod."""
    return bool(selector.get("matchLabels")) and selector["matchLabels"].items() <= labels.items()


def unknown(names: dict[str, str] | set[str]) -> Iterator[str]:
    """Variables that look like settings of the gateway, and are none."""
    known = set(re.findall(r"`([A-Z_]+)`", (ROOT / "docs/CONFIGURATION.md").read_text(encoding="utf-8")))
    for name in sorted(names):
        if name.startswith(("PUSHDOWN_", "ORT_")) and name not in known:
            yield f"docs/CONFIGURATION.md has no variable {name}"


def seconds(time: str) -> int:
    """A time such as `150s` or `2m`."""
    return int(time[:-1]) * {"s": 1, "m": 60, "h": 3600}[time[-1]]


def unit(folder: pathlib.Path) -> Iterator[str]:
    """What systemd says about the unit with its drop-in, and how exposed the unit is."""
    text = (folder / UNIT).read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as temporary:
        copy = pathlib.Path(temporary) / UNIT
        # This machine may not have the gateway.
        copy.write_text(re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/true", text), encoding="utf-8")
        (drop_ins := pathlib.Path(temporary) / f"{UNIT}.d").mkdir()
        for file in folder.glob("*.conf"):
            (drop_ins / file.name).write_bytes(file.read_bytes())
        verified = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False)
        # Each line once; other units of this machine may have faults of their own.
        found = {line.rpartition(f"{temporary}/")[2] for line in verified.stderr.splitlines() if UNIT in line}
        yield from (f"systemd-analyze: {line}" for line in sorted(found))
        command = ["systemd-analyze", "security", "--offline=true", f"--threshold={MAX_EXPOSURE}", "--no-pager", copy]
        exposure = subprocess.run(command, capture_output=True, text=True, check=False)
        if exposure.returncode != 0:
            yield f"{UNIT}: {exposure.stdout.splitlines()[-1]}, expected at most {MAX_EXPOSURE / 10}"
    example = (folder / "gateway.env.example").read_text(encoding="utf-8")
    variables = dict(re.findall(r"(?m)^#?([A-Z_]+)=(.*)$", example))
    variables |= dict(re.findall(r"(?m)^#\s+(PUSHDOWN_[A-Z_]+)=(.*)$", (folder / "resign.conf").read_text(encoding="utf-8")))
    yield from (f"systemd: {fault}" for fault in unknown(variables))
    drain, stop = seconds(variables["PUSHDOWN_DRAIN_TIMEOUT"]), re.search(r"(?m)^TimeoutStopSec=(\w+)$", text)
    if not stop or seconds(stop[1]) <= drain:
        yield f"{UNIT}: expected a TimeoutStopSec above PUSHDOWN_DRAIN_TIMEOUT, {drain} s"


if __name__ == "__main__":
    faults = main(DEPLOY)
    for fault in faults:
        print(f"lint-deploy: {fault}", file=sys.stderr)
    sys.exit(bool(faults))
