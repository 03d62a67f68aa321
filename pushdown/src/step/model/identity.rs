//! What runs models, as the last bits of their values depend on it.

use std::{
    ffi::{CStr, c_char},
    fmt,
    path::Path,
    str::FromStr,
};

use serde::Serialize;

/// A version of ONNX Runtime, the execution provider, and what the processor can do. Models of GPUs are not told apart.
///
/// As text `onnxruntime=1.31.1; provider=cpu; processor=avx2+fma`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// Version of ONNX Runtime.
    pub onnxruntime: String,
    /// The execution provider.
    pub provider: String,
    /// The instructions by which kernels are chosen; the architecture where nothing else tells.
    pub processor: String,
}

const VERSION: &str = "onnxruntime=";
const PROVIDER: &str = "provider=";
const PROCESSOR: &str = "processor=";

impl fmt::Display for Identity {
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

impl FromStr for Identity {
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

/// The instructions by which ONNX Runtime chooses its kernels.
#[cfg(target_arch = "x86_64")]
pub(super) fn processor() -> String {
    let known = [
        ("avx2", is_x86_feature_detected!("avx2")),
        ("fma", is_x86_feature_detected!("fma")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("avx512vnni", is_x86_feature_detected!("avx512vnni")),
        ("avxvnni", is_x86_feature_detected!("avxvnni")),
    ];
    let has = known.into_iter().filter(|(_, has)| *has).map(|(name, _)| name);
    let has: Vec<_> = has.collect();
    if has.is_empty() {
        std::env::consts::ARCH.to_owned()
    } else {
        has.join("+")
    }
}

/// The instructions by which ONNX Runtime chooses its kernels.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn processor() -> String {
    std::env::consts::ARCH.to_owned()
}

/// What a library of ONNX Runtime exports: this much of it is the same in all versions.
#[repr(C)]
struct Base {
    api: unsafe extern "C" fn(u32) -> *const std::ffi::c_void,
    version: unsafe extern "C" fn() -> *const c_char,
}

/// The version of a library that has been loaded: `1.31.1`, say. The safe interface tells of what commit it was built only.
///
/// # Errors
/// What is wrong with it.
#[expect(
    unsafe_code,
    reason = "two functions of a C library that no crate has in safe form"
)]
pub(super) fn version(library: &Path) -> Result<String, libloading::Error> {
    // SAFETY: it is in this process already, so that nothing of it runs once more.
    let library = unsafe { libloading::Library::new(library) }?;
    // SAFETY: ONNX Runtime declares it like that in `onnxruntime_c_api.h`.
    let base = unsafe { library.get::<unsafe extern "C" fn() -> *const Base>(b"OrtGetApiBase") }?;
    // SAFETY: it takes nothing, and gives a static or null.
    let Some(base) = (unsafe { base().as_ref() }) else {
        return Ok(String::new());
    };
    // SAFETY: it takes nothing, and gives a static string that ends with a zero.
    let version = unsafe { CStr::from_ptr((base.version)()) };
    Ok(version.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_is_written() {
        let found = Identity {
            onnxruntime: "1.31.1".to_owned(),
            provider: "cpu".to_owned(),
            processor: processor(),
        };
        assert_eq!(found.to_string().parse(), Ok(found.clone()));
        assert!(!found.processor.is_empty());
        let text = "onnxruntime=1.31.1; provider=cpu; processor=avx2";
        assert!(text.parse::<Identity>().is_ok());
        for other in [
            "",
            "1.31.1; cpu; avx2",
            "onnxruntime=1; provider=cpu",
            &format!("{text}; more=1"),
        ] {
            assert_eq!(other.parse::<Identity>(), Err(()), "{other}");
        }
    }
}
