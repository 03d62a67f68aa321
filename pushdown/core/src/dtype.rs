//! Element types and axis orders.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::language::{FromValue, Value};

/// Element type of a tensor. Elements are little-endian in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DType {
    /// Unsigned 8 bit.
    U8,
    /// Signed 8 bit; also the codes of `quantize(int8)`.
    I8,
    /// Signed 32 bit.
    I32,
    /// Signed 64 bit.
    I64,
    /// IEEE 754 binary16.
    F16,
    /// The upper half of a binary32.
    Bf16,
    /// IEEE 754 binary32.
    F32,
}

impl DType {
    /// All element types, in the order of the documentation.
    pub const ALL: [Self; 7] = [
        Self::U8,
        Self::I8,
        Self::I32,
        Self::I64,
        Self::F16,
        Self::Bf16,
        Self::F32,
    ];

    /// Bytes per element.
    pub const fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 => 8,
        }
    }

    /// The name in pipelines, headers and struct columns.
    pub const fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DType {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == name).ok_or(())
    }
}

/// The order of the axes of an image tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Channels, height, width: the order that PyTorch expects.
    Chw,
    /// Height, width, channels: the order of pixels in images.
    Hwc,
    /// Not an image.
    Flat,
}

impl Layout {
    /// The name in pipelines and headers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chw => "chw",
            Self::Hwc => "hwc",
            Self::Flat => "flat",
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Layout {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        [Self::Chw, Self::Hwc, Self::Flat]
            .into_iter()
            .find(|layout| layout.name() == name)
            .ok_or(())
    }
}

impl FromValue for DType {
    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) => text.parse().ok(),
            _ => None,
        }
        .ok_or_else(|| format!("one of {}", Self::ALL.map(Self::name).join(", ")))
    }
}

impl FromValue for Layout {
    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) if text == "chw" => Ok(Self::Chw),
            Value::Text(text) if text == "hwc" => Ok(Self::Hwc),
            _ => Err("one of chw, hwc".to_owned()),
        }
    }
}
