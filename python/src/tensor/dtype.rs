//! Element types and their names in Python's protocols.

use std::ffi::CStr;

use dlpark::ffi::DLDataType;
use pushdown::DType;

/// Type of the elements of a tensor: those of values, and what describes rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ElementType {
    Bool,
    U8,
    I8,
    I32,
    I64,
    F16,
    Bf16,
    F32,
    F64,
}

impl ElementType {
    const ALL: [Self; 9] = [
        Self::Bool,
        Self::U8,
        Self::I8,
        Self::I32,
        Self::I64,
        Self::F16,
        Self::Bf16,
        Self::F32,
        Self::F64,
    ];

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|element| element.name() == name)
    }

    pub(crate) fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::U8 => DType::U8.name(),
            Self::I8 => DType::I8.name(),
            Self::I32 => DType::I32.name(),
            Self::I64 => DType::I64.name(),
            Self::F16 => DType::F16.name(),
            Self::Bf16 => DType::Bf16.name(),
            Self::F32 => DType::F32.name(),
            Self::F64 => "f64",
        }
    }

    /// The same as a type of values; `None` if values never have it.
    pub(crate) const fn value_type(self) -> Option<DType> {
        Some(match self {
            Self::U8 => DType::U8,
            Self::I8 => DType::I8,
            Self::I32 => DType::I32,
            Self::I64 => DType::I64,
            Self::F16 => DType::F16,
            Self::Bf16 => DType::Bf16,
            Self::F32 => DType::F32,
            Self::Bool | Self::F64 => return None,
        })
    }

    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }

    /// Format of the buffer protocol, as in Python's `struct`. It has no `bfloat16`: its bits are an unsigned integer.
    pub(super) const fn format(self) -> &'static CStr {
        match self {
            Self::Bool => c"?",
            Self::U8 => c"B",
            Self::I8 => c"b",
            Self::I32 => c"i",
            Self::I64 => c"q",
            Self::F16 => c"e",
            Self::Bf16 => c"H",
            Self::F32 => c"f",
            Self::F64 => c"d",
        }
    }

    pub(super) const fn dlpack(self) -> DLDataType {
        match self {
            Self::Bool => DLDataType::BOOL,
            Self::U8 => DLDataType::U8,
            Self::I8 => DLDataType::I8,
            Self::I32 => DLDataType::I32,
            Self::I64 => DLDataType::I64,
            Self::F16 => DLDataType::F16,
            Self::Bf16 => DLDataType::BF16,
            Self::F32 => DLDataType::F32,
            Self::F64 => DLDataType::F64,
        }
    }
}

impl From<DType> for ElementType {
    fn from(dtype: DType) -> Self {
        match dtype {
            DType::U8 => Self::U8,
            DType::I8 => Self::I8,
            DType::I32 => Self::I32,
            DType::I64 => Self::I64,
            DType::F16 => Self::F16,
            DType::Bf16 => Self::Bf16,
            DType::F32 => Self::F32,
        }
    }
}
