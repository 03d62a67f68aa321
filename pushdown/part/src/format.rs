//! The formats of parts.

use std::{fmt, str::FromStr};

use pushdown_core::Error;
use serde::{Deserialize, Serialize};

/// The file format of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PartFormat {
    /// A tar shard as `WebDataset` reads it.
    Wds,
    /// A Parquet file as Hugging Face `datasets` reads it.
    Parquet,
}

impl PartFormat {
    /// All formats.
    pub const ALL: [Self; 2] = [Self::Wds, Self::Parquet];

    /// The name on the command line and in requests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wds => "wds",
            Self::Parquet => "parquet",
        }
    }

    /// The extension of a part's key, without a dot.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Wds => "tar",
            Self::Parquet => "parquet",
        }
    }
}

impl fmt::Display for PartFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PartFormat {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mut formats = Self::ALL.into_iter();
        formats.find(|format| format.name() == text).ok_or_else(|| {
            Error::wire(format!(
                "invalid format of parts: expected wds or parquet, found {text:?}"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_parse_their_own_names() {
        for format in PartFormat::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
            assert_eq!(serde_json::to_value(format).unwrap(), format.name());
            assert_eq!(
                serde_json::from_value::<PartFormat>(format.name().into()).unwrap(),
                format
            );
        }
        assert_eq!(PartFormat::ALL.map(PartFormat::extension), ["tar", "parquet"]);
        let error = "tar".parse::<PartFormat>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid format of parts: expected wds or parquet, found \"tar\""
        );
    }
}
