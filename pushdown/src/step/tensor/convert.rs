//! Numbers from one dtype to another.

use half::{bf16, f16};

pub(super) use crate::sample::Element as Stored;

/// An element that converts by way of f32 or i64: integers exactly through i64, floats through f32.
pub(crate) trait Element: Stored {
    /// Zero.
    const ZERO: Self;
    /// As a number.
    fn number(self) -> Number;
    /// From a number: floats to integers by ties to even, saturating, NaN to 0; integers saturate.
    fn from_number(number: Number) -> Self;
}

/// The two families of numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Number {
    Whole(i64),
    Real(f32),
}

macro_rules! whole {
    ($($type:ty),+) => {$(
        impl Element for $type {
            const ZERO: Self = 0;

            fn number(self) -> Number {
                Number::Whole(i64::from(self))
            }

            #[expect(clippy::allow_attributes, reason = "not every type truncates")]
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates floats; integers are clamped")]
            fn from_number(number: Number) -> Self {
                match number {
                    Number::Whole(value) => value.clamp(i64::from(Self::MIN), i64::from(Self::MAX)) as Self,
                    Number::Real(value) => value.round_ties_even() as Self,
                }
            }
        }
    )+};
}

whole!(u8, i8, i32, i64);

impl Element for f32 {
    const ZERO: Self = 0.0;

    fn number(self) -> Number {
        Number::Real(self)
    }

    #[expect(clippy::cast_precision_loss, reason = "to nearest, as torch does")]
    fn from_number(number: Number) -> Self {
        match number {
            Number::Whole(value) => value as Self,
            Number::Real(value) => value,
        }
    }
}

macro_rules! half {
    ($($type:ty),+) => {$(
        impl Element for $type {
            const ZERO: Self = Self::ZERO;

            fn number(self) -> Number {
                Number::Real(self.to_f32())
            }

            fn from_number(number: Number) -> Self {
                Self::from_f32(f32::from_number(number))
            }
        }
    )+};
}

half!(f16, bf16);

/// Converts all of `values`.
pub(super) fn convert<A: Element, B: Element>(values: &[A]) -> Vec<B> {
    values
        .iter()
        .map(|value| B::from_number(value.number()))
        .collect()
}
