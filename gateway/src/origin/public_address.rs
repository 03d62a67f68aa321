//! Which addresses are public: those that the gateway may connect to on the word of a caller.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A range of addresses: those that begin with the first `bits` of an address.
struct Range<A>(A, u32);

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u32) -> Range<u32> {
    Range(Ipv4Addr::new(a, b, c, d).to_bits(), bits)
}

const fn v6(first: u16, second: u16, third: u16, bits: u32) -> Range<u128> {
    Range(Ipv6Addr::new(first, second, third, 0, 0, 0, 0, 0).to_bits(), bits)
}

/// IPv4 addresses that are not reachable from everywhere: the special-purpose registry of IANA (RFC 6890), multicast and reserved ones, and
/// an address that Azure gives to the metadata of a machine, in a public range.
const NOT_PUBLIC_V4: [Range<u32>; 16] = [
    v4(0, 0, 0, 0, 8),
    v4(10, 0, 0, 0, 8),
    v4(100, 64, 0, 0, 10),
    v4(127, 0, 0, 0, 8),
    v4(168, 63, 129, 16, 32),
    v4(169, 254, 0, 0, 16),
    v4(172, 16, 0, 0, 12),
    v4(192, 0, 0, 0, 24),
    v4(192, 0, 2, 0, 24),
    v4(192, 88, 99, 0, 24),
    v4(192, 168, 0, 0, 16),
    v4(198, 18, 0, 0, 15),
    v4(198, 51, 100, 0, 24),
    v4(203, 0, 113, 0, 24),
    v4(224, 0, 0, 0, 4),
    v4(240, 0, 0, 0, 4),
];

/// The IPv6 addresses that are assigned for use everywhere. All others are loopback, private, link-local, multicast or reserved.
const GLOBAL_UNICAST: Range<u128> = v6(0x2000, 0, 0, 3);

/// Ranges of [`GLOBAL_UNICAST`] that are not public: of the protocols of IETF, Teredo among them, and of documentation.
const NOT_PUBLIC_V6: [Range<u128>; 3] = [
    v6(0x2001, 0, 0, 23),
    v6(0x2001, 0xdb8, 0, 32),
    v6(0x3fff, 0, 0, 20),
];

/// Addresses of 6to4, which have an IPv4 address after the prefix (RFC 3056).
const SIX_TO_FOUR: Range<u128> = v6(0x2002, 0, 0, 16);
/// Addresses of NAT64, which have an IPv4 address at their end (RFC 6052).
const NAT64: Range<u128> = v6(0x64, 0xff9b, 0, 96);

impl Range<u32> {
    const fn contains(&self, address: Ipv4Addr) -> bool {
        (address.to_bits() ^ self.0) >> (u32::BITS - self.1) == 0
    }
}

impl Range<u128> {
    const fn contains(&self, address: Ipv6Addr) -> bool {
        (address.to_bits() ^ self.0) >> (u128::BITS - self.1) == 0
    }
}

/// Whether an address is public. One that stands for an IPv4 address is public if that one is.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match embedded_v4(address) {
            Some(embedded) => is_public_v4(embedded),
            None => {
                GLOBAL_UNICAST.contains(address) && !NOT_PUBLIC_V6.iter().any(|range| range.contains(address))
            }
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !NOT_PUBLIC_V4.iter().any(|range| range.contains(address))
}

/// The IPv4 address that an IPv6 address leads to.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let octets = address.octets();
    let four_from =
        |first: usize| Ipv4Addr::from(std::array::from_fn::<u8, 4, _>(|index| octets[first + index]));
    if SIX_TO_FOUR.contains(address) {
        Some(four_from(2))
    } else if NAT64.contains(address) {
        Some(four_from(12))
    } else {
        address.to_ipv4_mapped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> bool {
        is_public(text.parse().unwrap())
    }

    #[test]
    fn addresses_of_hosts_anywhere_are_public() {
        for address in [
            "8.8.8.8",
            "52.219.0.1",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "168.63.129.17",
            "223.255.255.255",
            "2600:1fa0::1",
            "2a05:d050::1",
            "::ffff:8.8.8.8",
            "2002:808:808::1",
            "64:ff9b::8.8.8.8",
        ] {
            assert!(check(address), "{address}");
        }
    }

    #[test]
    fn all_others_are_not() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.255",
            "168.63.129.16",
            "169.254.169.254",
            "169.254.170.2",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:0:127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::8.8.8.8",
            "100::1",
            "2001::1",
            "2001:0:7f00:1::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:a9fe:a9fe::1",
            "2002:c0a8:101::",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!check(address), "{address}");
        }
    }
}
