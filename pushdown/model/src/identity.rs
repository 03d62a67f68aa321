//! Detection of what runs models: the version of ONNX Runtime and the instruction sets.

use std::{
    ffi::{CStr, c_char},
    path::Path,
};

/// The instruction sets by which ONNX Runtime chooses its kernels.
#[cfg(target_arch = "x86_64")]
pub(super) fn processor() -> String {
    let known = [
        ("avx2", is_x86_feature_detected!("avx2")),
        ("fma", is_x86_feature_detected!("fma")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("avx512vnni", is_x86_feature_detected!("avx512vnni")),
        ("avxvnni", is_x86_feature_detected!("avxvnni")),
    ];
    let detected = known
        .into_iter()
        .filter(|(_, is_detected)| *is_detected)
        .map(|(name, _)| name);
    let detected: Vec<_> = detected.collect();
    if detected.is_empty() {
        std::env::consts::ARCH.to_owned()
    } else {
        detected.join("+")
    }
}

/// The instruction sets by which ONNX Runtime chooses its kernels.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn processor() -> String {
    std::env::consts::ARCH.to_owned()
}

/// The start of `OrtApiBase`, which is the same in all versions of ONNX Runtime.
#[repr(C)]
struct OrtApiBase {
    api: unsafe extern "C" fn(u32) -> *const std::ffi::c_void,
    version: unsafe extern "C" fn() -> *const c_char,
}

/// The version of a loaded library, such as `1.31.1`. The safe interface exposes only the commit of its build.
///
/// # Errors
/// If the library cannot be opened or lacks `OrtGetApiBase`.
#[expect(
    unsafe_code,
    reason = "two functions of a C library that no crate has in safe form"
)]
pub(super) fn version(library: &Path) -> Result<String, libloading::Error> {
    // SAFETY: the library is loaded already, so that none of its initializers runs again.
    let library = unsafe { libloading::Library::new(library) }?;
    // SAFETY: `onnxruntime_c_api.h` declares the function with this signature.
    let base = unsafe { library.get::<unsafe extern "C" fn() -> *const OrtApiBase>(b"OrtGetApiBase") }?;
    // SAFETY: it takes no argument, and returns a static or null.
    let Some(base) = (unsafe { base().as_ref() }) else {
        return Ok(String::new());
    };
    // SAFETY: it takes no argument, and returns a static string that ends with a zero.
    let version = unsafe { CStr::from_ptr((base.version)()) };
    Ok(version.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_named() {
        assert!(!processor().is_empty());
    }
}
