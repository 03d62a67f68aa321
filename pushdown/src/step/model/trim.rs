//! Memory that models have taken, and that nobody needs any more.

/// Gives what the C library's allocator has free back to the system. It keeps what ONNX Runtime frees: after a look at a
/// model, which shows every tensor, many times what runs take from then on; and between runs, in pieces that values of
/// another size do not fit into, several times what a run takes. Takes a few milliseconds.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "a function of the C library that no crate has in safe form"
)]
pub fn give_back() {
    // SAFETY: it takes the allocator's own locks, and touches no memory that is in use.
    unsafe { libc::malloc_trim(0) };
}

/// Elsewhere the allocator does what it does.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub const fn give_back() {}
