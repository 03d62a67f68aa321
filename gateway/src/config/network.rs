//! Networks of IP addresses: `10.0.0.1`, `10.1.0.0/16`, `fd00::/8`.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// Bits of an IPv6 address.
const IPV6_BITS: u8 = 128;
/// Bits of an IPv6 address in front of the IPv4 address that it stands for, `::ffff:0:0/96`.
const MAPPED_BITS: u8 = 96;

/// All addresses that begin with the same bits. An IPv4 address and the IPv6 address that stands for it are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Network {
    first: u128,
    bits: u8,
}

impl Network {
    /// The network of the addresses that are one client: the address itself, or the /64 of an IPv6 address, in which a host
    /// chooses its address.
    pub fn of_client(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(_) => Self::from(address),
            IpAddr::V6(_) => Self::around(address, 64),
        }
    }

    /// Whether an address is in this network.
    pub fn contains(&self, address: IpAddr) -> bool {
        Self::around(address, self.bits) == *self
    }

    /// The network of the first `bits` of an address in the form of IPv6.
    fn around(address: IpAddr, bits: u8) -> Self {
        let address = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        let mask = u128::MAX
            .checked_shl(u32::from(IPV6_BITS - bits))
            .unwrap_or_default();
        Self {
            first: address.to_bits() & mask,
            bits,
        }
    }

    /// The first address, and how many of its bits all addresses share.
    fn parts(&self) -> (IpAddr, u8) {
        let first = Ipv6Addr::from_bits(self.first);
        match first.to_ipv4_mapped() {
            Some(first) if self.bits >= MAPPED_BITS => (first.into(), self.bits - MAPPED_BITS),
            _ => (first.into(), self.bits),
        }
    }
}

/// The network of one address.
impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Self {
        Self::around(address, IPV6_BITS)
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fault =
            || format!("expected addresses or networks such as 10.0.0.1 or 10.1.0.0/16, found `{text}`");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| fault())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| fault())?;
        let offset = if address.is_ipv4() { MAPPED_BITS } else { 0 };
        let bits = bits.map_or(Some(IPV6_BITS), |bits| bits.checked_add(offset));
        let bits = bits.filter(|bits| *bits <= IPV6_BITS).ok_or_else(fault)?;
        let network = Self::around(address, bits);
        if network
            == (Self {
                bits,
                ..Self::from(address)
            })
        {
            Ok(network)
        } else {
            Err(format!(
                "expected the network `{network}`, found the address `{text}` in it"
            ))
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, bits) = self.parts();
        if self.bits == IPV6_BITS {
            write!(f, "{first}")
        } else {
            write!(f, "{first}/{bits}")
        }
    }
}

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_network_has_the_addresses_that_begin_with_its_bits() {
        for (network, within, beyond) in [
            ("10.0.0.1", "10.0.0.1", "10.0.0.2"),
            ("10.1.0.0/16", "10.1.255.255", "10.2.0.0"),
            ("0.0.0.0/0", "203.0.113.7", "2001:db8::1"),
            ("10.1.0.0/16", "::ffff:10.1.2.3", "::10.1.2.3"),
            ("fd00::/8", "fdff::1", "fe80::1"),
            ("2001:db8::7", "2001:db8::7", "2001:db8::8"),
        ] {
            let parsed: Network = network.parse().unwrap();
            assert!(parsed.contains(address(within)), "{network} {within}");
            assert!(!parsed.contains(address(beyond)), "{network} {beyond}");
            assert_eq!(parsed.to_string(), network);
        }
        let all: Network = "::/0".parse().unwrap();
        assert!(all.contains(address("10.0.0.1")) && all.contains(address("::1")));
    }

    #[test]
    fn a_wrong_network_is_a_fault() {
        for wrong in [
            "",
            "proxy",
            "10.0.0.1/33",
            "10.0.0.1/",
            "::1/129",
            "10.0.0/8",
            "10.0.0.1/-1",
        ] {
            let fault = Network::from_str(wrong).unwrap_err();
            assert!(fault.contains("expected addresses or networks"), "{fault}");
        }
        let fault = Network::from_str("10.1.2.3/16").unwrap_err();
        assert!(fault.contains("expected the network `10.1.0.0/16`"), "{fault}");
    }

    #[test]
    fn a_host_is_one_client_with_all_its_addresses() {
        let client = |text| Network::of_client(address(text));
        assert_eq!(client("10.0.0.1"), client("::ffff:10.0.0.1"));
        assert_ne!(client("10.0.0.1"), client("10.0.0.2"));
        assert_eq!(client("2001:db8::1"), client("2001:db8::ffff:1"));
        assert_ne!(client("2001:db8::1"), client("2001:db8:0:1::1"));
    }
}
