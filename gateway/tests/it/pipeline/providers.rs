//! What computes networks: said at start, and not taken for what was asked for.

use anyhow::Result;
use serde_json::Value;

use super::{
    Lab,
    networks::{PREPARED, folder, lab},
    photo,
};

/// What `/status.json` says, once a network has run.
fn in_force(lab: &Lab) -> Result<String> {
    lab.put("cat.jpg", photo(230, 230, "jpeg"))?;
    let answer = lab.get(
        "cat.jpg",
        &format!("{PREPARED} | model(squeezenet, until=cut:2)"),
        &[],
    )?;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let status: Value = serde_json::from_slice(&lab.gateway.page("/status.json")?.body)?;
    Ok(status["models"][0]["execution_provider"].to_string())
}

#[test]
fn networks_run_on_the_cpu_unless_told_otherwise() -> Result<()> {
    let folder = folder()?;
    for flags in [&[][..], &["--execution-provider=cpu"]] {
        let lab = lab(&folder, flags)?;
        assert_eq!(in_force(&lab)?, "\"cpu\"");
        let log = lab.gateway.log()?;
        assert!(log.contains(r#"\"execution_provider\":\"cpu\""#), "{log}");
        assert!(!log.contains("execution provider"), "{log}");
    }
    Ok(())
}

/// The library here knows the processor alone.
#[cfg(feature = "cuda")]
#[test]
fn networks_run_on_the_cpu_where_cuda_cannot_be_used() -> Result<()> {
    let folder = folder()?;
    let lab = lab(&folder, &["--execution-provider=cuda"])?;
    assert_eq!(in_force(&lab)?, "\"cpu\"");
    let log = lab.gateway.log()?;
    assert!(
        log.contains("the execution provider cuda failed its trial: "),
        "{log}"
    );
    assert!(log.contains("; networks run on the CPU"), "{log}");
    Ok(())
}
