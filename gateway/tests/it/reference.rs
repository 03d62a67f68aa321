//! The pages that are generated from the tables of settings and metrics. `make docs` writes them (`UPDATE_DOCS=1`).

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use clap::{Args as _, Command};
use pushdown_gateway::testing::{METRICS, Settings};

/// Compares `text` with the page in `docs/`, or writes it there.
fn check(page: &str, text: &str) -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(page);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, text)?;
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "docs/{page} is not what the code says: run `make docs`"
    );
    Ok(())
}

#[test]
fn the_page_of_settings_is_up_to_date() -> Result<()> {
    let command = Settings::augment_args(Command::new("serve"));
    let mut page = String::from(SETTINGS_INTRODUCTION);
    let mut heading = "";
    for argument in command.get_arguments() {
        let next = argument.get_help_heading().unwrap_or_default();
        if next != heading {
            heading = next;
            write!(
                page,
                "\n## {heading}\n\n| flag | variable | default | meaning |\n|---|---|---|---|\n"
            )?;
        }
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let (meaning, default) = match help.rsplit_once(" [default: ") {
            Some((meaning, default)) => (meaning, default.trim_end_matches(']')),
            None => (help.as_str(), ""),
        };
        let flag = argument.get_long().unwrap_or_default();
        let value = argument.get_value_names().map(<[_]>::concat).unwrap_or_default();
        let variable = argument.get_env().unwrap_or_default().display();
        writeln!(
            page,
            "| `--{flag} {value}` | `{variable}` | {default} | {meaning} |"
        )?;
    }
    check("CONFIGURATION.md", &page)
}

#[test]
fn the_page_of_metrics_is_up_to_date() -> Result<()> {
    let mut page = String::from(METRICS_INTRODUCTION);
    for metric in METRICS {
        writeln!(
            page,
            "| `{}` | {} | {} | {} | {} | {} |",
            metric.name,
            metric.kind,
            metric.labels.join(", "),
            metric.unit.unwrap_or_default(),
            format!("{:?}", metric.stability).to_lowercase(),
            metric.help
        )?;
    }
    check("METRICS.md", &page)
}

const SETTINGS_INTRODUCTION: &str = r#"# Configuration of the gateway

Generated from the code by `make docs`; CI checks it. `pushdown-gateway serve --help` prints the same.

Each setting is a flag, a variable or a key of the TOML file that `--config FILE` (`PUSHDOWN_CONFIG`) names. A flag overrides the
variable, and the variable the file. A key has the name of its flag without the dashes in front; limits are in the table `[limits]`. A key that
does not exist is an error, and all errors are reported at once.

```toml
upstream = "http://127.0.0.1:9000"
listen = "0.0.0.0:9900"
memory-budget = "4GiB"

[limits]
max-object-bytes = "64MiB"
queue-wait = "30s"
```

Sizes are numbers of bytes or have a unit (`4096`, `64KiB`, `1GB`); times always have one (`250ms`, `30s`, `5m`, `1h`). No request can raise a limit;
[HTTP.md](HTTP.md) has the errors. `/status.json` on the admin port shows what is in force, without secrets.
"#;

const METRICS_INTRODUCTION: &str = "# Metrics of the gateway

Generated from the code by `make docs`; CI checks it. `GET /metrics` on the admin port (`--admin-listen`) answers in the text format of
Prometheus. `docker/grafana` has a dashboard.

Names, labels and units of a stable metric change only in a major version, from 1.0 on; those of an unstable one in any version. Labels have few
values: `kind` is a route (`version`, `batch`, `models`, `pipeline`, `forward`), `status` a class such as `2xx`, `step` a step of a pipeline, or `cropped-jpeg`, `replica` the gateway's own
id. No label has a bucket, a key, or the address of a client or a store.

| name | type | labels | unit | stability | meaning |
|---|---|---|---|---|---|
";
