//! The engine that answers state.

use std::sync::OnceLock;

use pushdown::{Engine, Step, available_engine};

/// Variable with versions of step families that a debug build states instead of its own, such as `resample=99`: tests of a rolling update
/// need a gateway of another version. Values do not change.
const TEST_VERSIONS_VARIABLE: &str = "PUSHDOWN_TEST_ENGINE_FAMILY";

/// The versions in [`TEST_VERSIONS_VARIABLE`].
static TEST_VERSIONS: OnceLock<Engine> = OnceLock::new();

/// Reads [`TEST_VERSIONS_VARIABLE`]. A release build ignores it.
///
/// # Errors
/// If its text has no version of a family.
pub(crate) fn init() -> anyhow::Result<()> {
    let text = std::env::var(TEST_VERSIONS_VARIABLE).ok();
    if let Some(text) = text.filter(|_| cfg!(debug_assertions)) {
        let versions = test_versions(&text)?;
        tracing::warn!(%versions, "answers state versions of step families that are not those of this build");
        TEST_VERSIONS.get_or_init(|| versions);
    }
    Ok(())
}

fn test_versions(text: &str) -> anyhow::Result<Engine> {
    let versions: Engine = text.parse()?;
    anyhow::ensure!(
        versions != Engine::default(),
        "invalid {TEST_VERSIONS_VARIABLE}: expected versions of step families, such as `resample=99`, found `{text}`"
    );
    Ok(versions)
}

/// The engine of this gateway for these steps, as answers state it.
pub(crate) fn stated(steps: &[Step]) -> Engine {
    with_test_versions(available_engine(steps))
}

/// The engine of this gateway for all families, as answers state it.
pub(crate) fn stated_for_all() -> Engine {
    with_test_versions(Engine::all())
}

fn with_test_versions(engine: Engine) -> Engine {
    match TEST_VERSIONS.get() {
        Some(versions) => engine.with_versions_of(versions),
        None => engine,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_versions_name_families() {
        assert_eq!(test_versions("resample=99").unwrap().to_string(), "resample=99");
        for wrong in ["", "resize=99", "none", "99 resample"] {
            let error = test_versions(wrong).unwrap_err().to_string();
            assert!(error.contains(&format!("found `{wrong}`")), "{error}");
        }
    }
}
