//! The CPUs of this host, for a gateway that may have the same ones.

use std::fs;

/// What names the CPUs that so many threads of this process work on; `None` where the system does not tell, and where some
/// are left to others.
pub(crate) fn name(threads: usize) -> Option<String> {
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let mut lines = status.lines();
    let allowed = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    pushdown::wire::cpu_fingerprint(&boot_id, allowed, threads)
}
