//! The types of JSON's values, by the values: names in the order in which they are first seen.

use std::{fmt, sync::Arc};

use arrow_schema::{DataType, Field, Fields};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::{Error, Result, pipeline::excerpt};

/// What values have been seen in a place.
#[derive(Debug, Default)]
enum Seen {
    #[default]
    Null,
    Bool,
    Int,
    Float,
    Text,
    List(Box<Seen>),
    Object(Vec<(String, Seen)>),
}

/// The columns of a text's objects, and how many objects there are. Where the text is `cut`, the last one may be, too.
pub(super) fn infer(text: &[u8], cut: bool) -> Result<(Fields, usize)> {
    let mut seen = Seen::default();
    let (mut rows, mut before, mut start) = (0, 0, 0);
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<&RawValue>();
    loop {
        let value = match values.next() {
            None => break,
            Some(Ok(value)) => value.get(),
            Some(Err(error)) if cut && error.is_eof() => break,
            Some(Err(error)) => return Err(malformed(&error, error.line())),
        };
        let end = values.byte_offset();
        let lines = |range| memchr::memchr_iter(b'\n', text.get(range).unwrap_or_default()).count();
        before += lines(start..end - value.len());
        let mut parser = serde_json::Deserializer::from_str(value);
        let read = Row(&mut seen).deserialize(&mut parser);
        read.map_err(|error| malformed(&error, before + error.line()))?;
        before += lines(end - value.len()..end);
        start = end;
        rows += 1;
    }
    match seen {
        Seen::Object(fields) => Ok((to_fields(fields), rows)),
        _ => Ok((Fields::empty(), rows)),
    }
}

/// An error in a line, whose own place is that in a row.
fn malformed(error: &serde_json::Error, line: usize) -> Error {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or_default();
    Error::undecodable(format!(
        "found malformed JSON in line {line}: {}",
        excerpt(what, 300)
    ))
}

fn to_fields(fields: Vec<(String, Seen)>) -> Fields {
    let field = |(name, seen): (String, Seen)| Field::new(name, seen.into_type(), true);
    fields.into_iter().map(field).collect()
}

impl Seen {
    fn into_type(self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::Int => DataType::Int64,
            Self::Float => DataType::Float64,
            Self::Null | Self::Text => DataType::Utf8,
            Self::List(item) => DataType::List(Arc::new(Field::new_list_field(item.into_type(), true))),
            Self::Object(fields) => DataType::Struct(to_fields(fields)),
        }
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "true or false",
            Self::Int | Self::Float => "a number",
            Self::Text => "a string",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    /// Takes one more value into account, whose inside comes later.
    fn also(&mut self, found: Self) -> Result<(), String> {
        let both = match (&*self, &found) {
            (Self::Null, _) => found,
            (Self::Int, Self::Float) => Self::Float,
            (Self::Bool, Self::Bool)
            | (Self::Int, Self::Int)
            | (Self::Float, Self::Int | Self::Float)
            | (Self::Text, Self::Text)
            | (Self::List(_), Self::List(_))
            | (Self::Object(_), Self::Object(_)) => return Ok(()),
            _ => {
                return Err(format!(
                    "found {}, expected {} as before",
                    found.name(),
                    self.name()
                ));
            }
        };
        *self = both;
        Ok(())
    }
}

/// A row, which has to be an object.
struct Row<'a>(&'a mut Seen);

impl<'de> DeserializeSeed<'de> for Row<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(Place(self.0))
    }
}

/// A value in its place.
struct Place<'a>(&'a mut Seen);

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object in each line")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<(), E> {
        self.0.also(Seen::Bool).map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<(), E> {
        self.0.also(Seen::Int).map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<(), E> {
        let fits = i64::try_from(number).is_ok();
        self.0
            .also(if fits { Seen::Int } else { Seen::Float })
            .map_err(E::custom)
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<(), E> {
        self.0.also(Seen::Float).map_err(E::custom)
    }

    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<(), E> {
        self.0.also(Seen::Text).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.0
            .also(Seen::List(Box::default()))
            .map_err(A::Error::custom)?;
        if let Seen::List(item) = self.0 {
            while items.next_element_seed(Place(item))?.is_some() {}
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        self.0.also(Seen::Object(Vec::new())).map_err(A::Error::custom)?;
        let Seen::Object(fields) = self.0 else {
            return Ok(());
        };
        // Names mostly come in the order of the row before.
        let mut next = 0;
        while let Some(name) = entries.next_key::<String>()? {
            let expected = fields.get(next).is_some_and(|(field, _)| *field == name);
            let place = if expected {
                Some(next)
            } else {
                fields.iter().position(|(field, _)| *field == name)
            };
            let place = place.unwrap_or_else(|| {
                fields.push((name, Seen::default()));
                fields.len() - 1
            });
            next = place + 1;
            let (name, seen) = &mut fields[place];
            entries
                .next_value_seed(Place(seen))
                .map_err(|error| named(error, name))?;
        }
        Ok(())
    }
}

/// An error of this file with the name of the column; the parser's own have to stay what they are, since an early end is one
/// of them. The parser adds the place behind each, and reads it back from there.
fn named<E: serde::de::Error>(error: E, name: &str) -> E {
    let text = error.to_string();
    match text.split_once(" as before at line ") {
        Some((what, place)) => E::custom(format!(
            "{what} as before in `{}` at line {place}",
            excerpt(name, 60)
        )),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inferred(text: &str) -> Result<Vec<(String, DataType)>> {
        let (fields, _) = infer(text.as_bytes(), false)?;
        let field = |field: &Arc<Field>| (field.name().clone(), field.data_type().clone());
        Ok(fields.iter().map(field).collect())
    }

    #[test]
    fn types_are_those_of_all_rows() {
        let found = inferred("{\"b\": 1, \"a\": null}\n{\"a\": [{\"x\": true}], \"b\": 1.5, \"c\": \"t\"}\n")
            .unwrap();
        let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["b", "a", "c"]);
        assert_eq!(found[0].1, DataType::Float64);
        let inner = Fields::from(vec![Field::new("x", DataType::Boolean, true)]);
        let item = Field::new_list_field(DataType::Struct(inner), true);
        assert_eq!(found[1].1, DataType::List(Arc::new(item)));
        assert_eq!(found[2].1, DataType::Utf8);
    }

    #[test]
    fn types_that_do_not_fit_are_told() {
        let error = inferred("{\"a\": {\"b\": 1}}\n{\"a\": {\"b\": \"x\"}}")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("found a string, expected a number as before in `b`"),
            "{error}"
        );
        assert!(error.contains("line 2"), "{error}");
        assert!(
            inferred("[1]")
                .unwrap_err()
                .to_string()
                .contains("an object in each line")
        );
        assert!(inferred("{\"a\": ").is_err());
        assert!(infer(b"{\"a\": 1}\n{\"a\": 1", true).is_ok());
    }
}
