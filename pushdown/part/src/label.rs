//! Labels of samples, and their type.

use std::{borrow::Cow, collections::HashSet};

use pushdown_core::{Error, Result};
use serde::{Deserialize, Serialize};

/// The type of all labels of a data set. In JSON: `"int"`, `"float"`, `"text"` or `{"class": {"names": [..]}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum LabelType {
    /// The number of a class, from 0.
    Class {
        /// The name of each class.
        names: Vec<String>,
    },
    /// A whole number.
    Int,
    /// A finite number.
    Float,
    /// A text.
    Text,
}

/// The label of a sample. In JSON: a number or a string.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Label {
    /// A whole number, or the number of a class.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text.
    Text(String),
}

impl LabelType {
    /// Checks the type itself.
    ///
    /// # Errors
    /// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for no class, and for classes of one name.
    pub fn check(&self) -> Result<()> {
        let Self::Class { names } = self else {
            return Ok(());
        };
        if names.is_empty() {
            return Err(Error::wire(
                "invalid label type: expected the name of at least one class, found none",
            ));
        }
        let mut known = HashSet::new();
        match names.iter().find(|name| !known.insert(name.as_str())) {
            Some(name) => Err(Error::wire(format!(
                "invalid label type: expected classes of different names, found {name:?} twice"
            ))),
            None => Ok(()),
        }
    }

    /// Checks that the label of `sample` has this type. A whole number is a `Float` if a float can hold it.
    ///
    /// # Errors
    /// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for another label. The message names the sample.
    pub fn check_label(&self, sample: &str, label: &Label) -> Result<()> {
        self.fit(sample, label).map(drop)
    }

    /// The label in the variant of its type.
    pub(crate) fn fit<'a>(&self, sample: &str, label: &'a Label) -> Result<Cow<'a, Label>> {
        match (self, label) {
            (Self::Class { names }, Label::Int(class))
                if usize::try_from(*class).is_ok_and(|class| class < names.len()) =>
            {
                Ok(Cow::Borrowed(label))
            }
            (Self::Int, Label::Int(_)) | (Self::Text, Label::Text(_)) => Ok(Cow::Borrowed(label)),
            (Self::Float, Label::Float(number)) if number.is_finite() => Ok(Cow::Borrowed(label)),
            (Self::Float, Label::Int(number)) if number.unsigned_abs() <= EXACT_INTEGERS => {
                #[expect(
                    clippy::cast_precision_loss,
                    reason = "compared with the largest exact integer"
                )]
                let number = *number as f64;
                Ok(Cow::Owned(Label::Float(number)))
            }
            _ => Err(Error::wire(format!(
                "invalid label of sample {sample:?}: expected {}, found {}",
                self.description(),
                label.description()
            ))),
        }
    }

    fn description(&self) -> String {
        match self {
            Self::Class { names } => format!("a class from 0 to {}", names.len().saturating_sub(1)),
            Self::Int => "a whole number".to_owned(),
            Self::Float => "a finite number that a 64-bit float holds".to_owned(),
            Self::Text => "a text".to_owned(),
        }
    }
}

/// Up to here a 64-bit float holds each whole number.
const EXACT_INTEGERS: u64 = 1 << f64::MANTISSA_DIGITS;

impl Label {
    fn description(&self) -> String {
        match self {
            Self::Int(number) => number.to_string(),
            Self::Float(number) => format!("the float {number:?}"),
            Self::Text(text) => format!("the text {text:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(names: &[&str]) -> LabelType {
        LabelType::Class {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn types_and_labels_have_one_form_in_json() {
        for (label_type, text) in [
            (classes(&["cat", "dog"]), r#"{"class":{"names":["cat","dog"]}}"#),
            (LabelType::Int, r#""int""#),
            (LabelType::Float, r#""float""#),
            (LabelType::Text, r#""text""#),
        ] {
            assert_eq!(serde_json::to_string(&label_type).unwrap(), text);
            assert_eq!(serde_json::from_str::<LabelType>(text).unwrap(), label_type);
        }
        for unknown in [
            r#""number""#,
            r#"{"class":{"names":[],"count":2}}"#,
            r#"{"class":{"names":[]},"int":null}"#,
            r#"{"int":{"names":[]}}"#,
        ] {
            assert!(serde_json::from_str::<LabelType>(unknown).is_err(), "{unknown}");
        }
        for (label, text) in [
            (Label::Int(-3), "-3"),
            (Label::Float(0.5), "0.5"),
            (Label::Text("ä".to_owned()), "\"ä\""),
        ] {
            assert_eq!(serde_json::to_string(&label).unwrap(), text);
            assert_eq!(serde_json::from_str::<Label>(text).unwrap(), label);
        }
    }

    #[test]
    fn labels_of_their_type_fit() {
        let class = classes(&["cat", "dog"]);
        let exact = i64::try_from(EXACT_INTEGERS).unwrap();
        for (label_type, label, expected) in [
            (&class, Label::Int(0), None),
            (&class, Label::Int(1), None),
            (&LabelType::Int, Label::Int(i64::MIN), None),
            (&LabelType::Float, Label::Float(-0.0), None),
            (&LabelType::Float, Label::Int(-3), Some(Label::Float(-3.0))),
            (
                &LabelType::Float,
                Label::Int(exact),
                Some(Label::Float(9_007_199_254_740_992.0)),
            ),
            (&LabelType::Text, Label::Text(String::new()), None),
        ] {
            let fitted = label_type.fit("a", &label).unwrap();
            assert_eq!(*fitted, expected.unwrap_or_else(|| label.clone()));
        }
    }

    #[test]
    fn labels_of_another_type_are_refused_by_the_name_of_the_sample() {
        let class = classes(&["cat", "dog"]);
        let text = Label::Text("1".to_owned());
        for (label_type, label, expected) in [
            (&class, Label::Int(2), "expected a class from 0 to 1, found 2"),
            (&class, Label::Int(-1), "expected a class from 0 to 1, found -1"),
            (
                &class,
                Label::Float(1.0),
                "expected a class from 0 to 1, found the float 1.0",
            ),
            (&LabelType::Int, Label::Float(0.5), "found the float 0.5"),
            (
                &LabelType::Int,
                text,
                "expected a whole number, found the text \"1\"",
            ),
            (&LabelType::Float, Label::Float(f64::NAN), "found the float NaN"),
            (
                &LabelType::Float,
                Label::Int(i64::MAX),
                "found 9223372036854775807",
            ),
            (&LabelType::Text, Label::Int(1), "expected a text, found 1"),
        ] {
            let error = label_type
                .check_label("a/\n.jpg", &label)
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with("invalid label of sample \"a/\\n.jpg\": ") && error.contains(expected),
                "expected {expected}, found {error}"
            );
        }
    }

    #[test]
    fn classes_have_different_names() {
        for (label_type, expected) in [
            (classes(&[]), "at least one class"),
            (classes(&["a", "b", "a"]), "found \"a\" twice"),
        ] {
            let error = label_type.check().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        classes(&["a", "A"]).check().unwrap();
        LabelType::Text.check().unwrap();
    }
}
