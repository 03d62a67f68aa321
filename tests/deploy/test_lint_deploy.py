"""Each check of `lint_deploy.py` finds its error: deploy/ with one error, and the expected message."""

import pathlib
import shutil

import lint_deploy
import pytest

SET = "kubernetes/base/statefulset.yaml"
SERVICE = "kubernetes/base/service.yaml"
SCALER = "kubernetes/base/autoscaler.yaml"
BUDGET = "kubernetes/base/disruptionbudget.yaml"
POLICY = "kubernetes/base/networkpolicy.yaml"
ACCOUNT = "kubernetes/base/serviceaccount.yaml"
BASE = "kubernetes/base/kustomization.yaml"
ENV = "kubernetes/base/gateway.env"
ADDRESSES = "kubernetes/overlays/two-addresses/kustomization.yaml"
RESIGN = "kubernetes/overlays/resign/secrets.yaml"
DEMAND = "kubernetes/overlays/demand/kustomization.yaml"
UNIT = "systemd/pushdown-gateway.service"
EXAMPLE = "systemd/gateway.env.example"
DROP_IN = "systemd/resign.conf"
SELECTOR = "selector:\n    matchLabels: {app.kubernetes.io/name: pushdown-gateway}"
OTHER = "selector:\n    matchLabels: {app.kubernetes.io/name: other}"


@pytest.fixture(name="deploy")
def deploy_(tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy of deploy/ that tests can modify."""
    return pathlib.Path(shutil.copytree(lint_deploy.DEPLOY, tmp_path / "deploy"))


def test_valid_files_have_no_findings(deploy: pathlib.Path) -> None:
    assert lint_deploy.main(deploy) == []


@pytest.mark.parametrize(
    "file, original, replacement, message",
    [
        (SET, "      serviceAccountName:", "      serviceAcountName:", "base: StatefulSet pushdown-gateway: spec.template.spec: "),
        (SET, "periodSeconds: 10", "periodSeconds: ten", "livenessProbe.periodSeconds: 'ten' is not "),
        (SCALER, "averageUtilization", "averageUtilisation", "base: HorizontalPodAutoscaler pushdown-gateway: spec.metrics.0.resource.target: "),
        (SCALER, "autoscaling/v2", "autoscaling/v3", "base: HorizontalPodAutoscaler pushdown-gateway: Couldn't find schema "),
        (BASE, "  - service.yaml\n", "  - missing.yaml\n", "base: kustomize: "),
        (BASE, "  - service.yaml\n", "", "base: expected a Service, found none"),
        (BASE, "newTag: v0.1.0", "newTag: latest", "gateway: found image registry.example.com/pushdown-gateway:latest, expected a version"),
        (BASE, "    newTag: v0.1.0\n", "", "gateway: found image registry.example.com/pushdown-gateway, expected a version"),
        (SET, "runAsNonRoot: true", "runAsNonRoot: false", "gateway: expected runAsNonRoot: true"),
        (SET, "runAsUser: 10001", "runAsUser: 0", "gateway: expected runAsNonRoot: true and a runAsUser above 0"),
        (SET, "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "gateway: found readOnlyRootFilesystem: False"),
        (SET, "allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", "gateway: found allowPrivilegeEscalation: True"),
        (SET, "drop: [ALL]", "drop: [CHOWN]", "gateway: found capabilities: {'drop': ['CHOWN']}"),
        (SET, "RuntimeDefault", "Unconfined", "found seccompProfile: {'type': 'Unconfined'}"),
        (SET, "limits: {cpu: \"4\", memory", "limits: {memory", "gateway: expected limits of cpu and memory"),
        (SET, "automountServiceAccountToken: false", "automountServiceAccountToken: true", "expected automountServiceAccountToken: false"),
        (ACCOUNT, "automountServiceAccountToken: false", "automountServiceAccountToken: true", "expected a ServiceAccount pushdown-gateway"),
        (SET, "  " + SELECTOR, "  " + OTHER, "its selector does not match the labels of its pods"),
        (SET, "labelSelector:\n            matchLabels: {app.kubernetes.io/name: pushdown-gateway}", "labelSelector: {}", "a topologySpread"),
        (SERVICE, "selector: {app.kubernetes.io/name: pushdown-gateway}", "selector: {app: gateway}", "base: Service pushdown-gateway: its selector "),
        (BUDGET, SELECTOR, OTHER, "base: PodDisruptionBudget pushdown-gateway: its selector "),
        (POLICY, "podSelector:\n    matchLabels: {app.kubernetes.io/name: pushdown-gateway}", "podSelector:\n    matchLabels: {app: x}", "base: NetworkPolicy pushdown-gateway: its selector "),
        (SCALER, "kind: StatefulSet, name: pushdown-gateway", "kind: Deployment, name: pushdown-gateway", "its target Deployment "),
        (SERVICE, "clusterIP: None", "type: ClusterIP", "expected a headless Service pushdown-gateway"),
        (SERVICE, "publishNotReadyAddresses: false", "publishNotReadyAddresses: true", "expected a headless Service pushdown-gateway"),
        (SET, "httpGet: {path: /readyz, port: admin}", "httpGet: {path: /readyz, port: http}", "gateway: readinessProbe: found port http"),
        (SET, "          livenessProbe:\n            httpGet: {path: /healthz, port: admin}\n", "          livenessProbe:\n", "gateway: livenessProbe: found port None"),
        (SERVICE, "targetPort: s3", "targetPort: http", "base: Service pushdown-gateway: found port http, "),
        (POLICY, "port: admin", "port: metrics", "base: NetworkPolicy pushdown-gateway: found port metrics, "),
        (SET, "name: cache, mountPath", "name: disk, mountPath", "gateway: the volume disk does not exist"),
        (SET, "configMapRef: {name: pushdown-gateway}", "configMapRef: {name: gateway}", "gateway: the ConfigMap gateway does not exist"),
        (ENV, "MEMORY_BUDGET", "MEMORY_BUDJET", "docs/CONFIGURATION.md has no variable PUSHDOWN_MEMORY_BUDJET"),
        (ENV, "DRAIN_TIMEOUT=150s", "DRAIN_TIMEOUT=3m", "found terminationGracePeriodSeconds: 180, expected more than "),
        (ENV, "CACHE_DIR=/cache/pushdown", "CACHE_DIR=/cache", "found PUSHDOWN_CACHE_DIR=/cache, expected a folder in a volume"),
        (ADDRESSES, "/data/PUSHDOWN_UPSTREAM", "/data/PUSHDOWN_STORE", "overlays/two-addresses: kustomize: "),
        (ADDRESSES, "ports: [{port: 443}]", "port: 443", "overlays/two-addresses: NetworkPolicy pushdown-gateway: spec.egress.1: "),
        (RESIGN, "name: keys, mountPath", "name: key, mountPath", "overlays/resign: StatefulSet pushdown-gateway: gateway: the volume key "),
        (DEMAND, "type: AverageValue, averageValue", "type: AverageValue, value_", "overlays/demand: HorizontalPodAutoscaler pushdown-gateway: "),
        (UNIT, "ProtectSystem=strict", "ProtectSystems=strict", "systemd-analyze: pushdown-gateway.service:"),
        (UNIT, "NoNewPrivileges=yes\nCapabilityBoundingSet=\n", "", "Overall exposure level"),
        (UNIT, "TimeoutStopSec=150s", "TimeoutStopSec=2m", "expected a TimeoutStopSec above PUSHDOWN_DRAIN_TIMEOUT, 130 s"),
        (DROP_IN, "LogsDirectory=", "LogDirectory=", "systemd-analyze: pushdown-gateway.service.d/resign.conf:"),
        (DROP_IN, "PUSHDOWN_AUDIT_LOG=", "PUSHDOWN_AUDIT=", "systemd: docs/CONFIGURATION.md has no variable PUSHDOWN_AUDIT"),
        (EXAMPLE, "PUSHDOWN_CACHE_DISK=", "PUSHDOWN_CACHE_SIZE=", "systemd: docs/CONFIGURATION.md has no variable PUSHDOWN_CACHE_SIZE"),
    ],
)  # fmt: skip
def test_each_error_is_reported(deploy: pathlib.Path, file: str, original: str, replacement: str, message: str) -> None:
    text = (deploy / file).read_text(encoding="utf-8")
    assert original in text
    (deploy / file).write_text(text.replace(original, replacement), encoding="utf-8")
    errors = lint_deploy.main(deploy)
    assert any(message in error for error in errors), errors


@pytest.mark.parametrize("time, seconds", [("150s", 150), ("2m", 120), ("1h", 3600)])
def test_times_are_parsed_like_the_gateway(time: str, seconds: int) -> None:
    assert lint_deploy.seconds(time) == seconds
