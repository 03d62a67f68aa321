//! Forms in which a stored object is sent, at stage 0, other than as it is.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use pushdown_core::Error;

/// A form of a stored object in which fewer bytes give the same values. An object that has no such form is sent as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObjectForm {
    /// A JPEG of only the blocks that the pipeline reads of the stored one. For a gateway with the feature
    /// [`CROPPED_JPEG`](crate::Features::CROPPED_JPEG).
    CroppedJpeg,
}

impl ObjectForm {
    /// The name in requests and answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CroppedJpeg => "cropped-jpeg",
        }
    }
}

impl fmt::Display for ObjectForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ObjectForm {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "cropped-jpeg" => Ok(Self::CroppedJpeg),
            _ => Err(Error::wire(format!(
                "found the form {text:?}, expected \"cropped-jpeg\""
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_parse_their_own_names() {
        let form = ObjectForm::CroppedJpeg;
        assert_eq!(form.to_string().parse::<ObjectForm>().unwrap(), form);
        assert_eq!(serde_json::to_value(form).unwrap(), form.name());
        let error = "cropped-png".parse::<ObjectForm>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "found the form \"cropped-png\", expected \"cropped-jpeg\""
        );
    }
}
