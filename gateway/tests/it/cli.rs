//! Output and exit codes of the command line.

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
