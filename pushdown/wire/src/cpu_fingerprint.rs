//! Tells whether gateway and host run on the same CPUs.

use sha2::{Digest as _, Sha256};

/// Identifies the CPUs that a process uses: processes with equal fingerprints share all of their CPUs. A hash of both texts, so
/// that it reveals nothing else about a host.
///
/// `boot_id` is the boot id of the kernel, which is the same in all containers of a host, and `allowed` a list of CPUs such as
/// `0-3,8`. `None` if either is invalid, or if the process has fewer threads than CPUs and so leaves some to other processes.
pub fn cpu_fingerprint(boot_id: &str, allowed: &str, threads: usize) -> Option<String> {
    let count = |part: &str| -> Option<usize> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        (last + 1).checked_sub(first)
    };
    let (boot_id, allowed) = (boot_id.trim(), allowed.trim());
    let all: usize = allowed.split(',').map(count).sum::<Option<usize>>()?;
    let digest = Sha256::new()
        .chain_update(b"pushdown cpus\0")
        .chain_update(boot_id)
        .chain_update(b"\0")
        .chain_update(allowed)
        .finalize();
    (!boot_id.is_empty() && threads >= all).then(|| hex::encode(&digest[..16]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_cpus_of_one_host_have_equal_fingerprints() {
        let own = cpu_fingerprint("a-boot\n", "0-3,8\n", 5).expect("five threads on five CPUs");
        assert_eq!(own.len(), 32);
        assert_eq!(cpu_fingerprint("a-boot", "0-3,8", 9), Some(own.clone()));
        assert_ne!(
            cpu_fingerprint("other", "0-3,8", 5),
            Some(own.clone()),
            "another host"
        );
        assert_ne!(
            cpu_fingerprint("a-boot", "0-3,9", 5),
            Some(own),
            "other CPUs of this host"
        );
        assert_eq!(
            cpu_fingerprint("a-boot", "0-3,8", 4),
            None,
            "one CPU is left to other processes"
        );
        for (boot_id, allowed) in [("", "0"), ("a", ""), ("a", "none"), ("a", "3-1"), ("a", "0,,1")] {
            assert_eq!(
                cpu_fingerprint(boot_id, allowed, 64),
                None,
                "{boot_id:?} {allowed:?}"
            );
        }
    }
}
