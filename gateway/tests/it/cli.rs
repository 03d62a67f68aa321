//! Output and exit codes of the command line.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

use anyhow::Result;

use super::binary;

fn run(arguments: &[&str]) -> Result<Output> {
    let mut command = Command::new(binary());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PUSHDOWN_") {
            command.env_remove(name);
        }
    }
    Ok(command.args(arguments).output()?)
}

#[test]
fn help() -> Result<()> {
    let output = run(&["serve", "--help"])?;
    assert!(output.status.success());
    insta::assert_snapshot!(String::from_utf8(output.stdout)?);
    Ok(())
}

/// Users paste help into tickets, so it must not show secrets from environment variables.
#[test]
fn help_hides_the_values_of_environment_variables() -> Result<()> {
    let output = Command::new(binary())
        .args(["serve", "--help"])
        .env("PUSHDOWN_UPSTREAM", "http://hidden-1@store")
        .env("PUSHDOWN_ACCESS_KEY", "hidden-2")
        .env("PUSHDOWN_SECRET_KEY", "hidden-3")
        .env("PUSHDOWN_MAX_QUEUED", "hidden-4")
        .env("PUSHDOWN_CONFIG", "hidden-5")
        .output()?;
    let help = String::from_utf8(output.stdout)?;
    assert!(
        help.contains("PUSHDOWN_UPSTREAM") && !help.contains("hidden-"),
        "{help}"
    );
    Ok(())
}

#[test]
fn program_help() -> Result<()> {
    insta::assert_snapshot!(String::from_utf8(run(&["--help"])?.stdout)?);
    Ok(())
}

#[test]
fn all_configuration_errors_are_reported_at_once() -> Result<()> {
    let output = run(&[
        "serve",
        "--upstream=http://store/path",
        "--store=data",
        "--listen=here",
        "--memory-budget=plenty",
        "--queue-wait=10",
        "--tls-key=key.pem",
        "--max-connections=0",
    ])?;
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(String::from_utf8(output.stderr)?);
    Ok(())
}

#[test]
fn an_unknown_configuration_key_is_an_error() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("gateway.toml");
    std::fs::write(
        &file,
        "upstream = \"http://127.0.0.1:8333\"\n[limits]\nqueue-weight = \"10s\"\n",
    )?;
    let output = run(&["serve", "--config", &file.display().to_string()])?;
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8(output.stderr)?.replace(&file.display().to_string(), "FILE");
    insta::assert_snapshot!(errors);
    Ok(())
}

#[test]
fn a_missing_configuration_file_is_an_error() -> Result<()> {
    let output = run(&["serve", "--config", "/does/not/exist.toml"])?;
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(String::from_utf8(output.stderr)?);
    Ok(())
}

#[test]
fn health_checks_a_running_gateway() -> Result<()> {
    let keys = pushdown_testkit::Keys::new("pushdowntestkey", "pushdowntestsecret");
    let gateway = pushdown_testkit::Gateway::embedded(binary(), &keys, [""; 0])?;
    let admin = format!("--admin={}", gateway.admin());
    assert!(run(&["health", &admin])?.status.success());
    assert!(run(&["health", &admin, "--ready"])?.status.success());
    drop(gateway);
    let output = run(&["health", &admin])?;
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr)?.contains("no gateway answers"));
    Ok(())
}

const KEYS: &str = r#"
[[key]]
access-key = "TESTTRAINER00001"
secret = "hidden-secret-0001"
previous-secret = "hidden-secret-0000"
tenant = "vision"
upstream = "gateway"
models = ["resnet50", "clip"]

[[key.grant]]
bucket = "photos"
prefix = "2024/"
allow = ["read", "list"]
pipelines = true

[[key.grant]]
bucket = "*"
allow = ["list"]

[[key]]
access-key = "TESTNOTHING00001"
secret = "hidden-secret-0002"
upstream = "gateway"

[[key]]
access-key = "TESTCALLER000001"
secret = "hidden-secret-0003"
upstream = "self"
"#;

/// Checks a keys file with this text and mode, and names it `FILE` in the errors.
fn check_keys(text: &str, mode: u32, flags: &[&str]) -> Result<(Output, String)> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("keys.toml");
    std::fs::write(&file, text)?;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode))?;
    let file = file.display().to_string();
    let output = run(&[&["keys", "check", &file][..], flags].concat())?;
    let errors = String::from_utf8_lossy(&output.stderr).replace(&file, "FILE");
    Ok((output, errors))
}

#[test]
fn keys_help() -> Result<()> {
    for command in [&["keys"][..], &["keys", "check"], &["keys", "new"]] {
        let output = run(&[command, &["--help"]].concat())?;
        assert!(output.status.success());
        insta::assert_snapshot!(command.join("_"), String::from_utf8(output.stdout)?);
    }
    Ok(())
}

#[test]
fn keys_check_shows_what_each_key_may_do() -> Result<()> {
    let (output, errors) = check_keys(KEYS, 0o600, &[])?;
    assert!(output.status.success(), "{errors}");
    let table = String::from_utf8(output.stdout)?;
    assert!(!table.contains("hidden"), "{table}");
    insta::assert_snapshot!(table);
    Ok(())
}

#[test]
fn keys_check_prints_json() -> Result<()> {
    let (output, errors) = check_keys(KEYS, 0o600, &["--json"])?;
    assert!(output.status.success(), "{errors}");
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(shown["faults"], serde_json::json!([]));
    assert_eq!(
        shown["keys"][2],
        serde_json::json!({
            "access_key": "TESTTRAINER00001",
            "tenant": "vision",
            "upstream": "gateway",
            "secrets": 2,
            "models": ["clip", "resnet50"],
            "is_unrestricted": false,
            "grants": [
                { "bucket": "photos", "prefix": "2024/", "allow": ["list", "read"], "pipelines": true },
                { "bucket": "*", "prefix": "", "allow": ["list"], "pipelines": false },
            ],
        })
    );
    Ok(())
}

#[test]
fn keys_check_reports_all_faults_at_once() -> Result<()> {
    let faulty = KEYS.replace("2024/", "2024").replace("\"clip\"", "5");
    let (output, errors) = check_keys(&faulty, 0o644, &[])?;
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    insta::assert_snapshot!(errors);
    let (output, _) = check_keys(&faulty, 0o644, &["--json"])?;
    assert_eq!(output.status.code(), Some(1));
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(shown["faults"].as_array().map(Vec::len), Some(3));
    Ok(())
}

#[test]
fn a_new_key_passes_the_check() -> Result<()> {
    let new = [
        "keys",
        "new",
        "--bucket=photos",
        "--prefix=2024/",
        "--allow=list,read,write",
    ];
    let block = run(&new)?;
    assert!(block.status.success());
    let block = String::from_utf8(block.stdout)?;
    let (output, errors) = check_keys(&block, 0o600, &[])?;
    assert!(output.status.success(), "{errors}");
    let table = String::from_utf8(output.stdout)?;
    assert!(table.contains("photos  2024/   list read write"), "{table}");
    assert_ne!(run(&new)?.stdout, block.as_bytes());

    let output = run(&["keys", "new", "--bucket=photos", "--prefix=2024"])?;
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    let errors = String::from_utf8(output.stderr)?;
    assert!(
        errors.contains("prefix: expected a slash at the end, found `2024`"),
        "{errors}"
    );
    Ok(())
}
