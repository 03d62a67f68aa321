//! Host names below `.localhost`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The loopback addresses, for a name below `.localhost` (RFC 6761, section 6.3), whatever a resolver makes of it: a local store with
/// virtual hosts needs no DNS. `None` for other names, `localhost` among them.
pub fn loopback_addresses(name: &str) -> Option<[IpAddr; 2]> {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    name.ends_with(".localhost")
        .then_some([IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_below_localhost_are_loopback_addresses() {
        for name in ["photos.s3.eu-central-1.LocalHost", "a.localhost."] {
            let found = loopback_addresses(name).unwrap();
            assert!(found.iter().all(IpAddr::is_loopback), "{name}");
        }
    }

    #[test]
    fn other_names_are_not() {
        for name in [
            "localhost",
            "localhost.example",
            "xlocalhost",
            "s3.eu-central-1.amazonaws.com",
        ] {
            assert_eq!(loopback_addresses(name), None, "{name}");
        }
    }
}
