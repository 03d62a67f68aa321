//! Collects every fault of a configuration, so that they are reported at once.

use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::values::{Text, format_size, parse_duration, parse_size};

/// What is wrong with a configuration, each fault a sentence that names its setting.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
pub struct Faults(Vec<String>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the configuration does not work:")?;
        self.0.iter().try_for_each(|fault| write!(f, "\n  - {fault}"))
    }
}

impl Faults {
    pub(super) fn one(fault: String) -> Self {
        Self(vec![fault])
    }

    pub(super) fn note(&mut self, fault: impl Into<String>) {
        self.0.push(fault.into());
    }

    /// `value` if nothing was noted.
    pub(super) fn or<T>(self, value: T) -> Result<T, Self> {
        if self.0.is_empty() { Ok(value) } else { Err(self) }
    }

    /// A size above zero.
    pub(super) fn size(&mut self, name: &str, typed: Option<&Text>, default: u64) -> u64 {
        self.size_within(name, typed, default, 1..=u64::MAX)
    }

    pub(super) fn size_within(
        &mut self,
        name: &str,
        typed: Option<&Text>,
        default: u64,
        range: RangeInclusive<u64>,
    ) -> u64 {
        self.parsed(name, typed, default, |text| {
            let bytes = parse_size(text)?;
            if range.contains(&bytes) {
                return Ok(bytes);
            }
            Err(match *range.end() {
                u64::MAX => format!("`{text}` is less than {}", format_size(*range.start())),
                end => {
                    format!(
                        "`{text}` is not between {} and {}",
                        format_size(*range.start()),
                        format_size(end)
                    )
                }
            })
        })
    }

    /// A duration above zero.
    pub(super) fn duration(&mut self, name: &str, typed: Option<&Text>, default: Duration) -> Duration {
        self.parsed(name, typed, default, |text| match parse_duration(text)? {
            Duration::ZERO => Err("must be longer than zero".to_owned()),
            duration => Ok(duration),
        })
    }

    /// A number from 1 to 1,000,000.
    pub(super) fn count(&mut self, name: &str, typed: Option<&Text>, default: usize) -> usize {
        self.parsed(name, typed, default, |text| match text.trim().parse() {
            Ok(number @ 1..=1_000_000) => Ok(number),
            _ => Err(format!("`{text}` is not a number from 1 to 1000000")),
        })
    }

    pub(super) fn address(&mut self, name: &str, typed: Option<&Text>, default: SocketAddr) -> SocketAddr {
        self.parsed(name, typed, default, |text| {
            text.trim()
                .parse()
                .map_err(|_| format!("`{text}` is not an address, write it like {default}"))
        })
    }

    pub(super) fn parsed<T>(
        &mut self,
        name: &str,
        typed: Option<&Text>,
        default: T,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> T {
        match typed.map(|Text(text)| parse(text)) {
            None => default,
            Some(Ok(value)) => value,
            Some(Err(fault)) => {
                self.note(format!("{name}: {fault}"));
                default
            }
        }
    }
}
