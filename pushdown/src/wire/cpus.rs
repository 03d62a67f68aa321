//! Whether both ends of the wire work on the same CPUs.

use sha2::{Digest as _, Sha256};

/// Stands for the CPUs that a process works on: two that have the same answer share all of theirs. A hash of both texts, so
/// that nobody learns more of a host.
///
/// `boot_id` is the kernel's name for its present run, the same in all containers on it, `allowed` a list of CPUs such as
/// `0-3,8`. `None` for a process that has fewer threads than CPUs: it leaves some to others.
pub fn cpus(boot_id: &str, allowed: &str, threads: usize) -> Option<String> {
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
    fn the_same_cpus_of_the_same_host_have_the_same_name() {
        let here = cpus("a-boot\n", "0-3,8\n", 5).expect("five threads on five CPUs");
        assert_eq!(here.len(), 32);
        assert_eq!(cpus("a-boot", "0-3,8", 9), Some(here.clone()));
        assert_ne!(cpus("other", "0-3,8", 5), Some(here.clone()), "another host");
        assert_ne!(cpus("a-boot", "0-3,9", 5), Some(here), "other CPUs of it");
        assert_eq!(cpus("a-boot", "0-3,8", 4), None, "one CPU is left to others");
        for (boot_id, allowed) in [("", "0"), ("a", ""), ("a", "none"), ("a", "3-1"), ("a", "0,,1")] {
            assert_eq!(cpus(boot_id, allowed, 64), None, "{boot_id:?} {allowed:?}");
        }
    }
}
