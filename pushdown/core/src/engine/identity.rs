//! Identity of what runs models: the last bits of results depend on it.

use std::{fmt, str::FromStr};

use serde::Serialize;

/// The version of ONNX Runtime, the execution provider, and the instruction sets of the CPU. GPU models are not
/// distinguished.
///
/// The text form is `onnxruntime=1.31.1; provider=cpu; processor=avx2+fma`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuntimeIdentity {
    /// Version of ONNX Runtime.
    pub onnxruntime: String,
    /// The execution provider.
    pub provider: String,
    /// The instruction sets by which kernels are chosen, or the architecture.
    pub processor: String,
}

const VERSION: &str = "onnxruntime=";
const PROVIDER: &str = "provider=";
const PROCESSOR: &str = "processor=";

impl fmt::Display for RuntimeIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            onnxruntime,
            provider,
            processor,
        } = self;
        write!(
            f,
            "{VERSION}{onnxruntime}; {PROVIDER}{provider}; {PROCESSOR}{processor}"
        )
    }
}

impl FromStr for RuntimeIdentity {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.split("; ");
        let mut part = |name: &str| parts.next()?.strip_prefix(name).map(str::to_owned);
        let found = Self {
            onnxruntime: part(VERSION).ok_or(())?,
            provider: part(PROVIDER).ok_or(())?,
            processor: part(PROCESSOR).ok_or(())?,
        };
        parts.next().is_none().then_some(found).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        let found = RuntimeIdentity {
            onnxruntime: "1.31.1".to_owned(),
            provider: "cpu".to_owned(),
            processor: "avx2+fma".to_owned(),
        };
        assert_eq!(found.to_string().parse(), Ok(found.clone()));
        let text = "onnxruntime=1.31.1; provider=cpu; processor=avx2";
        assert!(text.parse::<RuntimeIdentity>().is_ok());
        for other in [
            "",
            "1.31.1; cpu; avx2",
            "onnxruntime=1; provider=cpu",
            &format!("{text}; more=1"),
        ] {
            assert_eq!(other.parse::<RuntimeIdentity>(), Err(()), "{other}");
        }
    }
}
