//! Collects all faults of a configuration, to report them at once.

use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::values::{Text, format_duration, format_size, parse_duration, parse_size};

/// The faults of a configuration. Each is a sentence that names its setting.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
pub struct Faults(Vec<String>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("invalid configuration:")?;
        self.0.iter().try_for_each(|fault| write!(f, "\n  - {fault}"))
    }
}

impl Faults {
    pub(super) fn from_fault(fault: String) -> Self {
        Self(vec![fault])
    }

    pub(super) fn add(&mut self, fault: impl Into<String>) {
        self.0.push(fault.into());
    }

    /// `value` if there are no faults.
    pub(super) fn into_result<T>(self, value: T) -> Result<T, Self> {
        if self.0.is_empty() { Ok(value) } else { Err(self) }
    }

    pub(super) fn size_within(
        &mut self,
        name: &str,
        setting: Option<&Text>,
        default: u64,
        range: RangeInclusive<u64>,
    ) -> u64 {
        self.parsed(name, setting, default, |text| {
            let bytes = parse_size(text)?;
            if range.contains(&bytes) {
                return Ok(bytes);
            }
            Err(match *range.end() {
                u64::MAX => format!(
                    "expected at least {}, found `{text}`",
                    format_size(*range.start())
                ),
                end => {
                    format!(
                        "expected {} to {}, found `{text}`",
                        format_size(*range.start()),
                        format_size(end)
                    )
                }
            })
        })
    }

    /// Parses a duration above zero.
    pub(super) fn duration(&mut self, name: &str, setting: Option<&Text>, default: Duration) -> Duration {
        self.duration_within(name, setting, default, Duration::from_millis(1)..=Duration::MAX)
    }

    pub(super) fn duration_within(
        &mut self,
        name: &str,
        setting: Option<&Text>,
        default: Duration,
        range: RangeInclusive<Duration>,
    ) -> Duration {
        self.parsed(name, setting, default, |text| match parse_duration(text)? {
            duration if range.contains(&duration) => Ok(duration),
            Duration::ZERO => Err(format!("expected more than zero, found `{text}`")),
            _ => Err(format!(
                "expected {} to {}, found `{text}`",
                format_duration(*range.start()),
                format_duration(*range.end())
            )),
        })
    }

    /// Parses a number from 1 to 1,000,000.
    pub(super) fn count(&mut self, name: &str, setting: Option<&Text>, default: usize) -> usize {
        self.count_within(name, setting, default, 1..=1_000_000)
    }

    pub(super) fn count_within(
        &mut self,
        name: &str,
        setting: Option<&Text>,
        default: usize,
        range: RangeInclusive<usize>,
    ) -> usize {
        self.parsed(name, setting, default, |text| match text.trim().parse() {
            Ok(number) if range.contains(&number) => Ok(number),
            _ => Err(format!(
                "expected a number from {} to {}, found `{text}`",
                range.start(),
                range.end()
            )),
        })
    }

    pub(super) fn address(&mut self, name: &str, setting: Option<&Text>, default: SocketAddr) -> SocketAddr {
        self.parsed(name, setting, default, |text| {
            text.trim()
                .parse()
                .map_err(|_| format!("expected an address such as {default}, found `{text}`"))
        })
    }

    pub(super) fn parsed<T>(
        &mut self,
        name: &str,
        setting: Option<&Text>,
        default: T,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> T {
        match setting.map(|Text(text)| parse(text)) {
            None => default,
            Some(Ok(value)) => value,
            Some(Err(fault)) => {
                self.add(format!("{name}: {fault}"));
                default
            }
        }
    }
}
