//! Returns freed heap memory to the system.

/// Returns the memory that the C library's allocator holds free to the system. The allocator keeps what ONNX Runtime frees:
/// after an inspection, where every tensor is an output, many times the memory of later runs; between runs, in pieces too
/// small for values of another size, several times the memory of one run. Takes a few milliseconds.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "a function of the C library that no crate has in safe form"
)]
pub fn trim_heap() {
    // SAFETY: it takes the allocator's own locks, and touches no memory that is in use.
    unsafe { libc::malloc_trim(0) };
}

/// Does nothing: only glibc has `malloc_trim`.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub const fn trim_heap() {}
