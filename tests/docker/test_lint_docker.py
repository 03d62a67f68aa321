"""Each check of `lint_docker.py` finds its error: docker/ with one error, and the expected message."""

import pathlib
import shutil

import lint_docker
import pytest

COMPOSE = "compose.yaml"
RESIGN = "compose.resign.yaml"
DASHBOARD = "grafana/dashboards/pushdown.json"
SOURCES = "grafana/provisioning/datasources/prometheus.yaml"
PROVIDERS = "grafana/provisioning/dashboards/pushdown.yaml"


@pytest.fixture(name="docker")
def docker_(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A copy of docker/ that tests can modify."""
    copy = tmp_path / "docker"
    shutil.copytree(lint_docker.DOCKER, copy)
    monkeypatch.setattr(lint_docker, "DOCKER", copy)
    return copy


def lint(docker: pathlib.Path) -> list[str]:
    return lint_docker.main([docker / COMPOSE, *sorted(docker.glob("compose.*.yaml"))])


def test_valid_files_have_no_findings(docker: pathlib.Path, capsys: pytest.CaptureFixture) -> None:
    assert lint(docker) == []
    assert "dashboard queries use only exported metrics" in capsys.readouterr().out


@pytest.mark.parametrize(
    "file, original, replacement, message",
    [
        (COMPOSE, "${BUCKET:-photos}", "${BUCKET}", "compose.yaml: found ${BUCKET}, expected a default"),
        (COMPOSE, "${BUCKET:-photos}", "${BUCKET:-}", "compose.yaml: found ${BUCKET:-}, expected a default"),
        (COMPOSE, "${BUCKET:-photos}", "$BUCKET", "compose.yaml: found $BUCKET, expected a default"),
        ("compose.seaweedfs.yaml", ":-pushdown-secret}", "}", "compose.seaweedfs.yaml: found ${STORE_SECRET_KEY}"),
        (COMPOSE, "read_only: true", "read_only: false", "store: found read_only: False, expected True"),
        (COMPOSE, "cap_drop: [ALL]", "cap_drop: [CHOWN]", "gateway: found cap_drop: ['CHOWN'], expected ['ALL']"),
        (COMPOSE, "no-new-privileges:true", "no-new-privileges:false", "bench: found security_opt: "),
        (COMPOSE, 'tmpfs: ["/tmp:mode=1777"]', "tmpfs: []", "load: its root is read-only, expected a tmpfs"),
        (COMPOSE, "    mem_limit: ${GATEWAY_MEMORY:-4g}\n", "", "gateway: expected a mem_limit"),
        (COMPOSE, "cpuset: ${STORE_CPUS:-0}", "cpuset: ${CPUS:-0}", "store: found cpuset: ${CPUS:-0}, expected STORE_CPUS"),
        (COMPOSE, "    cpuset: ${GATEWAY_CPUS:-1}\n", "", "gateway: found cpuset: None, expected GATEWAY_CPUS"),
        (COMPOSE, "${GATEWAY_CPUS:-1}", "${GATEWAY_CPUS:-0}", "gateway: its default CPU 0 is also that of store"),
        (COMPOSE, "${TRAINER_CPUS:-2}", "${TRAINER_CPUS:-1-3}", "bench: its default CPU 1 is also that of gateway"),
        (COMPOSE, "${STORE_CPUS:-0}", "${STORE_CPUS:-0,2}", "bench: its default CPU 2 is also that of store"),
        (COMPOSE, "profiles: [minio, bench]", "profiles: [minio]", "bench: it needs store, but the profile bench does not start it"),
        (COMPOSE, "    healthcheck:\n      test: [CMD, mc, ready, local]\n", "    x-none:\n", "it waits for the health of store, "),
        (COMPOSE, "- ./prometheus.yml:", "- ./prometheus.yaml:", "prometheus: ./prometheus.yaml does not exist in docker/"),
        ("compose.seaweedfs.yaml", "./seaweedfs.sh:", "./weed.sh:", "store: ./weed.sh does not exist in docker/"),
        (RESIGN, "\n  keys:\n", "\n  other:\n", "compose.resign.yaml: gateway: the secret keys is not declared"),
        (RESIGN, "/run/secrets/keys", "/run/secrets/other", "PUSHDOWN_RESIGN_KEYS: /run/secrets/other is not a secret of it"),
        (RESIGN, "${KEYS_FILE:-../keys.toml}", "${KEYS_FILE}", "compose.resign.yaml: found ${KEYS_FILE}, expected a default"),
        ("prometheus.yml", "gateway:9901", "gateway:9902", "gateway:9902 is not a port of a service"),
        ("prometheus.yml", "gateway:9901", "proxy:9901", "proxy:9901 is not a port of a service"),
        (SOURCES, "prometheus:9090", "prometheus:9091", "prometheus:9091 is not a port of a service"),
        (SOURCES, "uid: ", "uid: other-", "pushdown.json: unknown data source "),
        (PROVIDERS, "/var/lib/pushdown", "/var/lib/grafana", "the dashboard folder /var/lib/grafana/dashboards is not mounted"),
        (DASHBOARD, "pushdown_client_sent_bytes_total", "pushdown_sent_total", "the gateway does not export pushdown_sent_total"),
        (DASHBOARD, "by (", "by (colour, ", "the gateway does not export colour"),
        (DASHBOARD, "[$__rate_interval])", "[$__rate_interval]", "pushdown.json: "),
        (DASHBOARD, "label_values(", "label_values(pushdown_", "the gateway does not export pushdown_"),
    ],
)  # fmt: skip
def test_each_error_is_reported(docker: pathlib.Path, file: str, original: str, replacement: str, message: str) -> None:
    text = (docker / file).read_text(encoding="utf-8")
    assert original in text
    (docker / file).write_text(text.replace(original, replacement), encoding="utf-8")
    errors = lint(docker)
    assert any(message in error for error in errors), errors


@pytest.mark.parametrize("text, cpus", [("0", [0]), ("0,2", [0, 2]), ("4-7", [4, 5, 6, 7]), ("0,2-3", [0, 2, 3])])
def test_cpu_sets_are_parsed_like_docker(text: str, cpus: list[int]) -> None:
    assert lint_docker.cpus(text) == cpus
