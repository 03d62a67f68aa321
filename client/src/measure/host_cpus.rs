//! Identifies the CPUs of this host, to detect a gateway on the same ones.

use std::fs;

/// Identifies the CPUs that `threads` threads of this process run on. `None` if the system does not state them, or if
/// this process does not use all of them.
pub(crate) fn host_cpus(threads: usize) -> Option<String> {
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let mut lines = status.lines();
    let allowed = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    pushdown::wire::cpu_fingerprint(&boot_id, allowed, threads)
}
