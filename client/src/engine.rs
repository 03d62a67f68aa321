//! Compares the gateway's engine with that of this host.

use pushdown::Engine;

/// The most characters of an invalid engine in an error.
const SHOWN: usize = 256;

/// Parses the engine that the gateway states, and checks that its values agree with those computed on this host.
///
/// # Errors
/// The reason if they do not agree.
pub(crate) fn check_engine(host: &Engine, gateway: &str) -> Result<Engine, String> {
    let found = gateway.parse::<Engine>().ok();
    let advice = match &found {
        Some(found) if host.is_compatible_with(found) => return Ok(found.clone()),
        Some(found) if host.has_other_rounding(found) => "; use the same version of ONNX Runtime on both",
        _ => "",
    };
    // The endpoint may send any text of any length.
    let shown: String = gateway.escape_default().take(SHOWN).collect();
    Err(format!(
        "the gateway computes with engine {shown}, this host with {host}{advice}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_that_do_not_agree_are_refused_with_the_reason() {
        let host: Engine = "4; onnxruntime=1.31.1; provider=cpu; processor=avx2"
            .parse()
            .unwrap();
        let reason = |gateway: &str| check_engine(&host, gateway).unwrap_err();
        assert_eq!(
            reason("5"),
            "the gateway computes with engine 5, this host with 4; onnxruntime=1.31.1; provider=cpu; processor=avx2"
        );
        assert!(reason("none").starts_with("the gateway computes with engine none, this host"));
        let other = reason("4; onnxruntime=1.30.0; provider=cpu; processor=avx2");
        assert!(
            other.ends_with("; use the same version of ONNX Runtime on both"),
            "{other}"
        );
        assert_eq!(check_engine(&host, "4"), Ok(Engine::default()));
        let long = reason(&"\u{1b}[2J".repeat(1 << 16));
        assert!(long.len() < 500 && !long.contains('\u{1b}'), "{long}");
    }
}
