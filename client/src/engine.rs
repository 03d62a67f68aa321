//! Compares the gateway's engine with that of this host.

use std::cmp::Ordering;

use pushdown::{Engine, Family, Step};

/// The most characters of an invalid engine in an error.
const SHOWN: usize = 256;

/// Where the gateway's values begin to differ from those of this host.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Disagreement {
    /// Number of first steps whose values agree.
    pub(crate) stage: usize,
    /// What differs, and which end is older.
    pub(crate) reason: String,
}

/// Parses the engine that the gateway states, and checks that its values agree with those computed on this host.
///
/// # Errors
/// The reason if they do not agree.
pub(crate) fn check_engine(host: &Engine, gateway: &str) -> Result<Engine, String> {
    let found = parse_engine(host, gateway)?;
    let stated = |family: &Family| found.version(*family).is_some();
    let reason = Family::ALL
        .into_iter()
        .filter(stated)
        .find_map(|family| other_version(host, &found, family))
        .or_else(|| other_runtime(host, &found));
    reason.map_or(Ok(found), Err)
}

/// Parses the engine that the gateway states.
///
/// # Errors
/// If it is no engine, with that of this host.
pub(crate) fn parse_engine(host: &Engine, gateway: &str) -> Result<Engine, String> {
    gateway.parse().map_err(|_invalid| {
        // The endpoint may send any text of any length.
        let shown: String = gateway.escape_default().take(SHOWN).collect();
        format!("the gateway computes with engine {shown}, this host with {host}")
    })
}

/// Checks that the gateway's values agree with those of this host after each of these steps.
///
/// # Errors
/// The first step that differs: a family with another version, or a model on another ONNX Runtime if this host runs models, too.
pub(crate) fn check_steps(steps: &[Step], host: &Engine, gateway: &Engine) -> Result<(), Disagreement> {
    for (stage, step) in steps.iter().enumerate() {
        let families = step.families();
        let other_version = families
            .into_iter()
            .find_map(|family| other_version(host, gateway, family));
        let reason = other_version.or_else(|| {
            let other_runtime = other_runtime(host, gateway)?;
            (!step.models().is_empty()).then_some(other_runtime)
        });
        if let Some(reason) = reason {
            return Err(Disagreement { stage, reason });
        }
    }
    Ok(())
}

/// The reason why values of a family do not agree.
fn other_version(host: &Engine, gateway: &Engine, family: Family) -> Option<String> {
    let (host, gateway, name) = (host.version(family)?, gateway.version(family), family.name());
    match gateway {
        Some(gateway) if gateway == host => None,
        Some(gateway) => {
            let older = older_end(gateway.cmp(&host));
            Some(format!(
                "the gateway computes steps of `{name}` with version {gateway}, this host with {host}: {older} is older"
            ))
        }
        None => Some(format!(
            "the gateway states no version of steps of `{name}`, this host has {host}"
        )),
    }
}

/// The reason why values of models do not agree, if both ends run models.
fn other_runtime(host: &Engine, gateway: &Engine) -> Option<String> {
    let (host, gateway) = (host.runtime()?, gateway.runtime()?);
    let numbers = |version: &str| -> Vec<u64> {
        version
            .split('.')
            .map(|part| part.parse().unwrap_or_default())
            .collect()
    };
    (host.onnxruntime != gateway.onnxruntime).then(|| {
        let older = older_end(numbers(&gateway.onnxruntime).cmp(&numbers(&host.onnxruntime)));
        format!(
            "the gateway runs models with {gateway}, this host with {host}: {older} is older; use the same version of ONNX \
             Runtime on both"
        )
    })
}

/// The end with the lower version, from the comparison of the gateway's version with that of this host.
const fn older_end(order: Ordering) -> &'static str {
    match order {
        Ordering::Less => "the gateway",
        Ordering::Equal | Ordering::Greater => "this host",
    }
}

#[cfg(test)]
mod tests {
    use pushdown::Pipeline;

    use super::*;

    fn engine(text: &str) -> Engine {
        text.parse().unwrap()
    }

    #[test]
    fn engines_that_do_not_agree_are_refused_with_the_reason() {
        let host = engine("decode=4 tensor=4; onnxruntime=1.31.1; provider=cpu; processor=avx2");
        let reason = |gateway: &str| check_engine(&host, gateway).unwrap_err();
        assert_eq!(
            reason("5"),
            "the gateway computes steps of `decode` with version 5, this host with 4: this host is older"
        );
        assert_eq!(
            reason("decode=4 tensor=3"),
            "the gateway computes steps of `tensor` with version 3, this host with 4: the gateway is older"
        );
        assert!(reason("missing").starts_with("the gateway computes with engine missing, this host"));
        let other = reason("decode=4; onnxruntime=1.30.0; provider=cpu; processor=avx2");
        assert!(
            other.ends_with(": the gateway is older; use the same version of ONNX Runtime on both"),
            "{other}"
        );
        for gateway in ["4", "decode=4", "none", "decode=4 table=3"] {
            assert_eq!(check_engine(&host, gateway), Ok(engine(gateway)));
        }
        let long = reason(&"\u{1b}[2J".repeat(1 << 16));
        assert!(long.len() < 500 && !long.contains('\u{1b}'), "{long}");
    }

    #[test]
    fn the_longest_prefix_whose_families_agree_is_pushed() {
        let pipeline = Pipeline::parse("decode | resize(8, 8) | flip_h | to_float").unwrap();
        let stage = |gateway: &str| {
            let checked = check_steps(pipeline.steps(), &Engine::all(), &engine(gateway));
            checked.map_err(|disagreement| disagreement.stage)
        };
        for (gateway, expected) in [
            ("4", Ok(())),
            ("decode=4 resample=4 tensor=4 random=4 table=3", Ok(())),
            ("decode=4 resample=4 tensor=5 random=4", Err(3)),
            ("decode=4 resample=4 tensor=5 random=3", Err(2)),
            ("decode=4 resample=3 tensor=4 random=4", Err(1)),
            // A family that the gateway does not know.
            ("decode=4 tensor=4 random=4", Err(1)),
            ("decode=3", Err(0)),
            ("5", Err(0)),
        ] {
            assert_eq!(stage(gateway), expected, "{gateway}");
        }
    }
}
