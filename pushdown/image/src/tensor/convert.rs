//! Conversions of numbers between dtypes.

use half::{bf16, f16};

use pushdown_core::Element as StoredElement;

/// An element that converts exactly to i64 (integers) or f32 (floats).
pub(crate) trait Element: StoredElement {
    const ZERO: Self;
    fn number(self) -> Number;
    /// Converts from a number. Floats become integers by rounding ties to even and saturating; NaN becomes 0. Integers saturate.
    fn from_number(number: Number) -> Self;
}

/// The intermediate form of a conversion.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Number {
    Integer(i64),
    Float(f32),
}

macro_rules! integer_elements {
    ($($type:ty),+) => {$(
        impl Element for $type {
            const ZERO: Self = 0;

            fn number(self) -> Number {
                Number::Integer(i64::from(self))
            }

            #[expect(clippy::allow_attributes, reason = "not every type truncates")]
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates floats; integers are clamped")]
            fn from_number(number: Number) -> Self {
                match number {
                    Number::Integer(value) => value.clamp(i64::from(Self::MIN), i64::from(Self::MAX)) as Self,
                    Number::Float(value) => value.round_ties_even() as Self,
                }
            }
        }
    )+};
}

integer_elements!(u8, i8, i32, i64);

impl Element for f32 {
    const ZERO: Self = 0.0;

    fn number(self) -> Number {
        Number::Float(self)
    }

    #[expect(clippy::cast_precision_loss, reason = "to nearest, as in torch")]
    fn from_number(number: Number) -> Self {
        match number {
            Number::Integer(value) => value as Self,
            Number::Float(value) => value,
        }
    }
}

macro_rules! half_elements {
    ($($type:ty),+) => {$(
        impl Element for $type {
            const ZERO: Self = Self::ZERO;

            fn number(self) -> Number {
                Number::Float(self.to_f32())
            }

            fn from_number(number: Number) -> Self {
                Self::from_f32(f32::from_number(number))
            }
        }
    )+};
}

half_elements!(f16, bf16);

/// Converts all of `values`.
pub(super) fn convert<A: Element, B: Element>(values: &[A]) -> Vec<B> {
    values
        .iter()
        .map(|value| B::from_number(value.number()))
        .collect()
}
