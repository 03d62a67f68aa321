//! The gateway's engine beside the one of this host.

use pushdown::Engine;

/// So much is told of what is no engine.
const SHOWN: usize = 256;

/// The gateway's engine, by what it says of itself, where its values may stand beside those computed here.
///
/// # Errors
/// Why they may not.
pub(crate) fn beside(here: &Engine, gateway: &str) -> Result<Engine, String> {
    let found = gateway.parse::<Engine>().ok();
    let advice = match &found {
        Some(found) if here.is_compatible_with(found) => return Ok(found.clone()),
        Some(found) if here.has_other_rounding(found) => "; give both sides the same version of ONNX Runtime",
        _ => "",
    };
    // Whoever answers may send anything, and of any length.
    let shown: String = gateway.escape_default().take(SHOWN).collect();
    Err(format!(
        "the gateway computes with engine {shown}, this host with {here}{advice}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_stand_beside_the_other_is_told_why() {
        let here: Engine = "4; onnxruntime=1.31.1; provider=cpu; processor=avx2"
            .parse()
            .unwrap();
        let said = |gateway: &str| beside(&here, gateway).unwrap_err();
        assert_eq!(
            said("5"),
            "the gateway computes with engine 5, this host with 4; onnxruntime=1.31.1; provider=cpu; processor=avx2"
        );
        assert!(said("none").starts_with("the gateway computes with engine none, this host"));
        let other = said("4; onnxruntime=1.30.0; provider=cpu; processor=avx2");
        assert!(
            other.ends_with("; give both sides the same version of ONNX Runtime"),
            "{other}"
        );
        assert_eq!(beside(&here, "4"), Ok(Engine::default()));
        let long = said(&"\u{1b}[2J".repeat(1 << 16));
        assert!(long.len() < 500 && !long.contains('\u{1b}'), "{long}");
    }
}
