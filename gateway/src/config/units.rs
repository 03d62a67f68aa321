//! The units of limits: how a limit is given, checked and shown.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::Serialize;

use super::Faults;
use super::values::{Text, format_duration, format_size};

/// A unit of limits.
pub(super) trait Unit {
    /// A validated limit.
    type Value: Copy;
    /// A limit as help and status show it.
    type Shown: Display + Serialize;
    /// Stands for the value in `--help`.
    const PLACEHOLDER: &'static str;
    /// The values that are allowed.
    const RANGE: RangeInclusive<Self::Value>;

    /// The limit of a setting; `default` if it is not set, or not in `range`, which is a fault.
    fn validate(
        faults: &mut Faults,
        name: &str,
        setting: Option<&Text>,
        default: Self::Value,
        range: RangeInclusive<Self::Value>,
    ) -> Self::Value;

    /// The limit as it is shown, so that it can be given in the same way.
    fn shown(value: Self::Value) -> Self::Shown;
}

/// Bytes: `64KiB`.
pub(super) struct Size;

/// A number of things.
pub(super) struct Count;

/// A duration: `30s`.
pub(super) struct Time;

impl Unit for Size {
    type Value = u64;
    type Shown = String;
    const PLACEHOLDER: &'static str = "SIZE";
    const RANGE: RangeInclusive<u64> = 1..=u64::MAX;

    fn validate(
        faults: &mut Faults,
        name: &str,
        setting: Option<&Text>,
        default: u64,
        range: RangeInclusive<u64>,
    ) -> u64 {
        faults.size_within(name, setting, default, range)
    }

    fn shown(value: u64) -> String {
        format_size(value)
    }
}

impl Unit for Count {
    type Value = usize;
    type Shown = usize;
    const PLACEHOLDER: &'static str = "N";
    const RANGE: RangeInclusive<usize> = 1..=1_000_000;

    fn validate(
        faults: &mut Faults,
        name: &str,
        setting: Option<&Text>,
        default: usize,
        range: RangeInclusive<usize>,
    ) -> usize {
        faults.count_within(name, setting, default, range)
    }

    fn shown(value: usize) -> usize {
        value
    }
}

impl Unit for Time {
    type Value = Duration;
    type Shown = String;
    const PLACEHOLDER: &'static str = "TIME";
    const RANGE: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::MAX;

    fn validate(
        faults: &mut Faults,
        name: &str,
        setting: Option<&Text>,
        default: Duration,
        range: RangeInclusive<Duration>,
    ) -> Duration {
        faults.duration_within(name, setting, default, range)
    }

    fn shown(value: Duration) -> String {
        format_duration(value)
    }
}

/// `text` in capitals; `N` is its length.
pub(super) const fn capitals<const N: usize>(text: &str) -> [u8; N] {
    let mut capitals = [0; N];
    capitals.copy_from_slice(text.as_bytes());
    capitals.make_ascii_uppercase();
    capitals
}
